package keeper

import (
	"regexp"
	"strings"

	"cdpmux/lifecycle"
)

// launchSigns tells launches that ended apart, by exit code and by what Chrome
// printed. The first row that fits counts.
var launchSigns = []struct {
	exit int // or anyExit
	sign string
	kind string
	text string
	hint string
}{
	{anyExit, "Running as root without --no-sandbox", lifecycle.LaunchSandbox, "Chrome does not run as root with its sandbox", "serve as another user, or add --no-sandbox"},
	{anyExit, "No usable sandbox", lifecycle.LaunchSandbox, "this machine does not let Chrome build its sandbox", "allow unprivileged user namespaces, or add --no-sandbox"},
	{anyExit, "Missing X server or $DISPLAY", lifecycle.NoDisplay, "there is no display for a window", "set DISPLAY, or add --headless"},
	{anyExit, "Socket path too long", lifecycle.TmpdirTooLong, "the path of Chrome's temporary directory is too long", "use a shorter --home and TMPDIR"},
	{anyExit, "Failed To Create Data Directory", lifecycle.ProfileInvalid, "Chrome cannot use its profile directory", "give a directory that this user can write to with --profile"},
	{anyExit, "requires a non-default data directory", lifecycle.ProfileInvalid, "Chrome opens no DevTools for its default profile", "give another directory with --profile, or a copy of that one"},
	{anyExit, "snap install chromium", lifecycle.BrowserMissing, "the chromium found is only a stub for a snap", "install Google Chrome or a real chromium, or give --chrome PATH"},
	{21, "another computer", lifecycle.ProfileForeignHost, "the profile is locked by a Chrome on another host", "stop that Chrome; if it is gone for good, delete SingletonLock in the profile"},
	{21, "Permission denied", lifecycle.ProfileDenied, "Chrome may not write to its profile directory", "give the directory to this user, or choose another one with --profile"},
	{21, "", lifecycle.ProfileInUse, "the profile is in use by another Chrome", "close that Chrome (kill -INT keeps its logins), or choose another directory with --profile"},
	{anyExit, "", lifecycle.LaunchFailed, "Chrome ended before it was ready", "--log-level debug shows all that it prints"},
}

// anyExit is no exit code; a process that a signal ended has none either.
const anyExit = -1

// launchFailure says why a launch that printed lines ended with code exit.
func launchFailure(exit int, lines []string) *lifecycle.Failure {
	all := strings.Join(lines, "\n")
	for _, s := range launchSigns {
		if (s.exit == anyExit || s.exit == exit) && strings.Contains(all, s.sign) {
			return &lifecycle.Failure{Kind: s.kind, Text: s.text, Hint: s.hint, Lines: lastLines(lines, s.sign)}
		}
	}
	panic("unreachable: the last sign fits everything")
}

var address = regexp.MustCompile(`\bwss?://[^\s"']+|(\b\d{1,3}(\.\d{1,3}){3}|\[::1\]|\blocalhost):\d+`)

// query is what follows the path of a URL.
var query = regexp.MustCompile(`\b([a-z][a-z0-9+.-]*://[^\s"'?#]*)[?#][^\s"']*`)

// redact takes out of a line what whoever reads a log must not learn: Chrome's
// own port, and the queries of URLs, in which tokens stand.
func redact(line string) string {
	return query.ReplaceAllString(address.ReplaceAllString(line, "<address>"), "$1?<query>")
}

// lastLines returns the last three lines that hold sign and tell something.
func lastLines(lines []string, sign string) []string {
	var out []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" && strings.Contains(l, sign) && !strings.Contains(l, "dbus/") {
			out = append(out, redact(l))
		}
	}
	return out[max(0, len(out)-3):]
}
