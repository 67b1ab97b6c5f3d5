package keeper

import (
	"strings"
	"testing"

	"cdpmux/lifecycle"
)

func TestLaunchFailure(t *testing.T) {
	for _, tc := range []struct {
		exit  int
		lines string
		kind  string
	}{
		{1, "[1:1:ERROR:zygote_host_impl_linux.cc(90)] Running as root without --no-sandbox is not supported.", lifecycle.LaunchSandbox},
		{-1, "[1:1:FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox! If you are running on Ubuntu 23.10+", lifecycle.LaunchSandbox},
		{1, "Missing X server or $DISPLAY\nThe platform failed to initialize.  Exiting.", lifecycle.NoDisplay},
		{-1, "Socket path too long: /tmp/x", lifecycle.TmpdirTooLong},
		{21, "Failed to create /p/SingletonLock: File exists (17)", lifecycle.ProfileInUse},
		{21, "The profile appears to be in use by another Chromium process (1) on another computer (h).", lifecycle.ProfileForeignHost},
		{21, "Failed to create /p/SingletonLock: Permission denied (13)", lifecycle.ProfileDenied},
		{1, "dlopen: Permission denied", lifecycle.LaunchFailed},
		{0, "", lifecycle.LaunchFailed},
	} {
		f := launchFailure(tc.exit, strings.Split(tc.lines, "\n"))
		if f.Kind != tc.kind || f.Next() == "" {
			t.Errorf("exit %d, %q: %+v, want %s", tc.exit, tc.lines, f, tc.kind)
		}
	}
}

// Of a failure that is known, only the lines that show it are worth reading.
func TestFailureShowsItsSign(t *testing.T) {
	f := launchFailure(1, []string{
		"[1:1:ERROR:ozone_platform_x11.cc(256)] Missing X server or $DISPLAY",
		"[1:1:ERROR:env.cc(253)] The platform failed to initialize.  Exiting.",
		"[2:2:ERROR:zygote_linux.cc(662)] write: Broken pipe (32)",
	})
	if len(f.Lines) != 1 || !strings.Contains(f.Lines[0], "$DISPLAY") {
		t.Errorf("lines %q, want the first only", f.Lines)
	}
}

func TestFailureKeepsAddressesOut(t *testing.T) {
	f := launchFailure(1, []string{
		"one",
		"DevTools listening on ws://127.0.0.1:36043/devtools/browser/95fb3daf",
		"[1:2:ERROR:dbus/bus.cc:405] Failed to connect to the bus",
		"bind() to 127.0.0.1:36043 and [::1]:36043 failed",
		"",
		"last, see https://crbug.com/638180",
	})
	want := "Chrome ended before it was ready; its last lines: " +
		"DevTools listening on <address> | bind() to <address> and <address> failed | last, see https://crbug.com/638180"
	if f.Error() != want {
		t.Errorf("got  %s\nwant %s", f, want)
	}
}

func TestRedact(t *testing.T) {
	for line, want := range map[string]string{
		"ws://127.0.0.1:4711/devtools/browser/1 is mine":                   "<address> is mine",
		`source: https://shop.example/login?token=s&x=1#frag (12)`:         "source: https://shop.example/login?<query> (12)",
		`"chrome-extension://abc/page.html#secret", is it? no # a comment`: `"chrome-extension://abc/page.html?<query>", is it? no # a comment`,
	} {
		if got := redact(line); got != want {
			t.Errorf("redact(%q) = %q, want %q", line, got, want)
		}
	}
}
