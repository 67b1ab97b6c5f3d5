package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// proxies looks for a web proxy that the agents' own programs would ask for
// the way to us: many do so for loopback, too.
func proxies() Finding { return proxiesOf(os.Getenv) }

func proxiesOf(getenv func(string) string) Finding {
	const check = "proxies"
	either := func(name string) string {
		if v := getenv(strings.ToLower(name)); v != "" {
			return v
		}
		return getenv(name)
	}
	var set []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		if either(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return ok(check, "none is set")
	}
	text := strings.Join(set, ", ") + " set; the browser is not told of it, see --chrome-arg=--proxy-server=…"
	spared := map[string]bool{}
	for _, entry := range strings.Split(either("NO_PROXY"), ",") {
		spared[strings.TrimSpace(entry)] = true
	}
	if spared["*"] || spared["localhost"] && (spared["127.0.0.1"] || spared["127.0.0.0/8"]) {
		return ok(check, text)
	}
	return warn(check, text+"; agents may look for cdpmux through it", "export NO_PROXY=localhost,127.0.0.1,::1")
}

// clock refuses a time in which certificates and cookies are not valid yet,
// and one before what the state directory was written at.
func clock(now time.Time, dir string) Finding {
	const check = "clock"
	const next = "set the clock (timedatectl set-ntp true): logins depend on it"
	text := "it is " + now.UTC().Format("2006-01-02 15:04:05") + " UTC"
	if now.Year() < 2024 {
		return fail(check, text, next)
	}
	written, _ := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	for _, path := range written {
		if fi, err := os.Stat(path); err == nil && fi.ModTime().Sub(now) > time.Minute {
			return warn(check, fmt.Sprintf("%s, but %s was written at %s", text, path, fi.ModTime().UTC().Format("2006-01-02 15:04:05")), next)
		}
	}
	return ok(check, text)
}
