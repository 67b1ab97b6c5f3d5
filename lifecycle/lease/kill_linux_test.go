package lease

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// work makes and closes sessions until it is killed, and says on stdout what
// was promised, after it was: "made 7", "closed 7"; and "closing 7" before.
func work(path string) {
	w := newWorld()
	w.capacity = 1 << 20
	r, err := Open(Config{Store: "us-1", Journal: path, World: w.world(), Log: zerolog.Nop(), Idle: 1000 * time.Hour})
	if err != nil {
		fmt.Fprintln(os.Stdout, "error", err)
		os.Exit(1)
	}
	k := &kit{Registry: r}
	var mu sync.Mutex
	say := func(word string, n int) { mu.Lock(); defer mu.Unlock(); fmt.Fprintln(os.Stdout, word, n) }
	fmt.Fprintln(os.Stdout, "ready", 0)
	base := rand.IntN(1 << 30)
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for n := base + worker; ; n += 4 {
				if _, _, err := k.create(request(n)); err != nil {
					fmt.Fprintln(os.Stdout, "error", err)
					return
				}
				say("made", n)
				if n%3 == 0 {
					continue
				}
				say("closing", n)
				if _, err := k.stop(closing(n)); err != nil {
					fmt.Fprintln(os.Stdout, "error", err)
					return
				}
				say("closed", n)
			}
		})
	}
	workers.Wait()
	os.Exit(1)
}

// What was promised before a kill -9 holds after it: a session that was made
// is there, and one that was closed is never made again.
func TestKillAtRandomPointsKeepsEveryPromise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "us-1.sessions")
	promises := 0
	for round := range scaled(t, 100) {
		made, closed := run(t, path)
		w := newWorld()
		r, err := Open(Config{Store: "us-1", Journal: path, World: w.world(), Log: zerolog.Nop()})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		k := &kit{Registry: r}
		for n := range closed {
			_, _, err := k.create(request(n))
			wantKind(t, fmt.Sprintf("round %d: create of %d, which was closed", round, n), err, "session_closed")
		}
		for n, closing := range made {
			_, replayed, err := k.create(request(n))
			if closing && err != nil {
				continue // whether the close was written down nobody was told
			}
			if err != nil || !replayed {
				t.Errorf("round %d: session %d, which was made: replayed %v, %v", round, n, replayed, err)
			}
		}
		promises += len(made) + len(closed)
		if starts, _ := w.numbers(); starts != 0 {
			t.Errorf("round %d: %d browsers for sessions that were there", round, starts)
		}
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if n := r.Shutdown(ctx); n != 0 { // the next round begins with tombstones
			t.Errorf("round %d: %d are left", round, n)
		}
		cancel()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.FailNow()
		}
		if len(readFile(t, path)) > 1<<20 {
			path = filepath.Join(t.TempDir(), "us-1.sessions")
		}
	}
	if promises == 0 {
		t.Error("nothing was promised in any round")
	}
	t.Logf("%d promises held", promises)
}

// run lets the work go on for a random time, and kills it. made says of each
// session that was made and not closed whether its close was under way.
func run(t *testing.T, path string) (made, closed map[int]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEASE_TEST_JOURNAL="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	made, closed = map[int]bool{}, map[int]bool{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var word string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &word, &n); err != nil {
			if strings.HasPrefix(lines.Text(), "error") {
				t.Errorf("the work: %s", lines.Text())
			}
			continue // the kill cut it short
		}
		switch word {
		case "ready":
			time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		case "made":
			made[n] = false
		case "closing":
			made[n] = true
		case "closed":
			delete(made, n)
			closed[n] = true
		}
	}
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Errorf("the work: %s", stderr.String())
	}
	return made, closed
}
