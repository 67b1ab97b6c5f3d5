package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/lifecycle/ziniao"
)

// installed finds Chrome and asks for its version, which starts no browser.
func installed(ctx context.Context, path string) (f Finding, binary string) {
	binary, err := chrome.Find(path)
	if err != nil {
		return failed("browser", err), ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--version")
	cmd.WaitDelay = patience
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	out, err := cmd.Output()
	version, _, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
	switch {
	case ctx.Err() != nil:
		return fail("browser", fmt.Sprintf("%s does not tell its version within %s", binary, patience), "run it by hand, or give another binary with --chrome"), binary
	case err != nil:
		return fail("browser", fmt.Sprintf("%s does not run: %v%s", binary, err, said(err)), "install it anew, or give another binary with --chrome"), binary
	case version == "":
		return warn("browser", binary+" runs, but does not tell its version", "see that it is a Chrome or Chromium"), binary
	}
	return ok("browser", version+" at "+binary), binary
}

// said is the last line that a program printed on its way to failure.
func said(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	text := bytes.TrimSpace(exit.Stderr)
	if len(text) == 0 {
		return ""
	}
	return ": " + string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// failed is the finding of an error that may know what to do about it.
func failed(check string, err error) Finding {
	var f *lifecycle.Failure
	if errors.As(err, &f) {
		return fail(check, f.Text, f.Next())
	}
	return fail(check, err.Error(), "see the message")
}

// display says whether a window could be shown.
func display(headless bool) Finding {
	switch {
	case headless:
		return ok("display", "none is needed: --headless")
	case runtime.GOOS != "linux":
		return ok("display", "the desktop's")
	}
	for _, name := range []string{"WAYLAND_DISPLAY", "DISPLAY"} {
		if value := os.Getenv(name); value != "" {
			return ok("display", name+"="+value)
		}
	}
	return fail("display", "there is none for a window: neither DISPLAY nor WAYLAND_DISPLAY is set", "add --headless, or set DISPLAY")
}

// attached looks whether the browser to attach to is there.
func attached(ctx context.Context, endpoint string) Finding {
	a, err := lifecycle.NewAttach(endpoint)
	if err != nil {
		return fail("browser", err.Error(), "correct --endpoint")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := a.Start(ctx); err != nil {
		return failed("browser", err)
	}
	return ok("browser", "one answers at "+a.String())
}

// ziniaoState tells not reachable, no permission and ready apart.
func ziniaoState(ctx context.Context, c ziniao.Config) Finding {
	switch {
	case c.Addr == "" || c.Profile == "":
		return fail("ziniao", "no client or store is named", "give --ziniao-addr and --ziniao-profile")
	case c.Account == ziniao.Account{}:
		return fail("ziniao", "no account is given", "give --ziniao-account FILE, 0600, JSON with company, username and password")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := ziniao.Check(ctx, c.Addr, c.Account); err != nil {
		return failed("ziniao", err)
	}
	return ok("ziniao", "the client at "+c.Addr+" is ready")
}
