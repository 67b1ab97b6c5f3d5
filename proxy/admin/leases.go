package admin

import "github.com/prometheus/client_golang/prometheus"

// LeaseStatus is what /status and /metrics show of sessions and launches.
type LeaseStatus struct {
	Sessions  SessionCounts `json:"sessions"`
	Leases    LeaseCounts   `json:"leases"`
	Launch    LaunchCounts  `json:"launch"`
	Admission Admission     `json:"admission"`

	Degraded bool `json:"-"` // something of a session is left, and stays
}

// SessionCounts are the sessions by their state.
type SessionCounts struct {
	Creating           int `json:"creating"`
	Ready              int `json:"ready"`
	Closing            int `json:"closing"`
	CleanupPending     int `json:"cleanup_pending"`
	LateReleasePending int `json:"late_release_pending"`
	Tombstones         int `json:"tombstones"`
	Capacity           int `json:"capacity"`
}

// LeaseCounts are what was had and given back; active is the difference.
type LeaseCounts struct {
	Acquired        int64 `json:"acquired"`
	Released        int64 `json:"released"`
	ReleaseFailures int64 `json:"release_failures"`
	Active          int64 `json:"active"`
}

// LaunchCounts are the browser's launches by this proxy.
type LaunchCounts struct {
	OK              int64  `json:"ok"`
	Failed          int64  `json:"failed"`
	LastFailureKind string `json:"last_failure_kind,omitempty"`
}

// Admission is whether a session that was asked for now would get a browser.
type Admission struct {
	BrowserPath string `json:"browser_path,omitempty"`
	Version     string `json:"version,omitempty"` // while it is up
	OK          bool   `json:"ok"`
}

var (
	descLeaseSessions   = desc("sessions", "Sessions of /v1/sessions, by state; tombstones are of those that were closed.", "state")
	descSessionCapacity = desc("session_capacity", "Sessions that there may be at once.")
	descSessionDegraded = desc("sessions_degraded", "1 while something of a session is left that could not be released.")
	descLeases          = desc("leases_active", "Client ids that sessions hold.")
	descLeasesAcquired  = desc("leases_acquired_total", "Client ids that sessions took.")
	descLeasesReleased  = desc("leases_released_total", "Client ids that sessions gave back.")
	descReleaseFailures = desc("lease_release_failures_total", "Releases that failed, and hold their place until one works.")
	descLaunches        = desc("launches_total", "Launches of the browser by this proxy, by what came of them.", "outcome")
	descAdmission       = desc("admission_ok", "1 while a session that was asked for would get a browser.")
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
	gauge(descAdmission, one(l.Admission.OK))
}
