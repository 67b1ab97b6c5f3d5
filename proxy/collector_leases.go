package proxy

import "github.com/prometheus/client_golang/prometheus"

var (
	descLeaseSessions   = desc("sessions", "Sessions of /v1/sessions, by state; tombstones are of those that were closed.", "state")
	descSessionCapacity = desc("session_capacity", "Sessions that there may be at once.")
	descSessionDegraded = desc("sessions_degraded", "1 while something of a session is left that could not be released.")
	descLeases          = desc("leases_active", "Client ids that sessions hold.")
	descLeasesAcquired  = desc("leases_acquired_total", "Client ids that sessions took.")
	descLeasesReleased  = desc("leases_released_total", "Client ids that sessions gave back.")
	descReleaseFailures = desc("lease_release_failures_total", "Releases that failed, and hold their place until one works.")
	descLaunches        = desc("launches_total", "Launches of the browser by this proxy, by what came of them.", "outcome")
)

// collect tells the counts of sessions, as /status has them.
func (l *LeaseStatus) collect(gauge func(d *prometheus.Desc, value int, labels ...string), total func(d *prometheus.Desc, value int64, labels ...string)) {
	for state, n := range map[string]int{
		"creating": l.Sessions.Creating, "ready": l.Sessions.Ready, "closing": l.Sessions.Closing, "tombstone": l.Sessions.Tombstones,
		"cleanup_pending": l.Sessions.CleanupPending, "late_release_pending": l.Sessions.LateReleasePending,
	} {
		gauge(descLeaseSessions, n, state)
	}
	gauge(descSessionCapacity, l.Sessions.Capacity)
	gauge(descSessionDegraded, one(l.Degraded))
	gauge(descLeases, int(l.Leases.Active))
	total(descLeasesAcquired, l.Leases.Acquired)
	total(descLeasesReleased, l.Leases.Released)
	total(descReleaseFailures, l.Leases.ReleaseFailures)
	total(descLaunches, l.Launch.OK, "ok")
	total(descLaunches, l.Launch.Failed, "failed")
}
