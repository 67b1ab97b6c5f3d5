package chrome

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
)

// A browser that dies soon after each start, though it serves until then: it
// is launched once and three times more, and no further.
func TestStormOfLaunches(t *testing.T) {
	t.Parallel() // most of it is waiting
	cfg := testConfig(t)
	binary, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(cfg.Record)
	count := filepath.Join(dir, "launches")
	cfg.Path = script(t, fmt.Sprintf(`echo >>%q; %q "$@" & while ! test -s %q; do sleep 0.05; done; sleep 0.7; kill -KILL $!; exit 1`,
		count, binary, filepath.Join(cfg.Profile, keeper.ActivePort)))
	life, err := lifecycle.NewLife(lifecycle.LifeConfig{
		Store: "shop", Policy: lifecycle.BreakerPolicy{Max: 3, Window: 10 * time.Minute},
		BreakerFile: filepath.Join(dir, "breaker.json"),
		Lock:        lifecycle.LaunchLock{Dir: filepath.Join(dir, "machine"), Wait: time.Minute}, Log: cfg.Log,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Gate = life.Gate
	c := newChrome(t, cfg)
	life.Use(c)
	served := 0
	for range 8 {
		if _, err = life.Start(t.Context()); err != nil {
			continue
		}
		served++
		life.Connected()
		<-c.held.Ended()
		life.Lost()
	}
	launched, _ := os.ReadFile(count)
	if n := strings.Count(string(launched), "\n"); n != 4 || served == 0 {
		t.Errorf("%d launches, of which %d served", n, served)
	}
	if f := wantFailure(t, err, lifecycle.BreakerOpen); f.RetryAfter() < 9*time.Minute {
		t.Errorf("%s; retry after %s", f, f.RetryAfter())
	}
}

// Many lives leave the machine as it was.
func TestCyclesLeaveNothing(t *testing.T) {
	c := newChrome(t, testConfig(t))
	start(t, c)
	stopped(t, c)
	before := litter(t)
	for range scaled(t, 40) {
		start(t, c)
		rec := record(t, c)
		if r := stopped(t, c); r.Method != lifecycle.MethodGraceful {
			t.Errorf("receipt %+v", r)
		}
		for _, path := range []string{rec.TMPDIR, rec.Socket, rec.Cgroup} {
			if _, err := os.Lstat(path); path != "" && err == nil {
				t.Errorf("%s is still there", path)
			}
		}
	}
	if after := litter(t); after > before {
		t.Errorf("%d files open before, %d after", before, after)
	}
}

// litter counts what a life could leave open in this process.
func litter(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}
