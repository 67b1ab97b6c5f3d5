package ziniao

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
	"cdpmux/lifecycle/ziniao/ziniaotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var account = Account{"acme", "op", "secret"}

func double(t *testing.T) *ziniaotest.Server {
	s := ziniaotest.New(account.Company, account.Username, account.Password)
	t.Cleanup(s.Close)
	return s
}

func config(t *testing.T, s *ziniaotest.Server) Config {
	return Config{
		Addr: strings.TrimPrefix(s.URL, "http://"), Profile: "shop", Account: account, Store: "shop",
		Guard: t.TempDir(), Timing: Timing{Try: time.Second, Pause: time.Millisecond},
	}
}

func backend(t *testing.T, cfg Config) *Ziniao {
	t.Helper()
	z, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func wantKind(t *testing.T, err error, kind string) *lifecycle.Failure {
	t.Helper()
	var f *lifecycle.Failure
	if !errors.As(err, &f) || f.Kind != kind || f.Next() == "" {
		t.Fatalf("%v, want a failure of kind %s", err, kind)
	}
	if strings.Contains(f.Error(), account.Password) {
		t.Errorf("the password is in %q", f)
	}
	return f
}

func TestLaunches(t *testing.T) {
	const (
		ok, refused, silent, stale, noPage = ziniaotest.Works, ziniaotest.Refused, ziniaotest.Silent, ziniaotest.Stale, ziniaotest.NoPage
	)
	for _, tc := range []struct {
		launches []ziniaotest.Launch
		starts   int
		kind     string
	}{
		{[]ziniaotest.Launch{ok}, 1, ""},
		{[]ziniaotest.Launch{noPage}, 1, ""},
		{[]ziniaotest.Launch{stale, ok}, 2, ""},
		{[]ziniaotest.Launch{refused, silent, stale, stale, ok}, 5, ""},
		{[]ziniaotest.Launch{stale, stale, stale, stale, stale, ok}, 5, lifecycle.ZiniaoFailed},
	} {
		t.Run(fmt.Sprint(tc.launches), func(t *testing.T) {
			s := double(t)
			dir := t.TempDir()
			lock := filepath.Join(dir, "SingletonLock")
			if err := os.WriteFile(lock, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.Add("other", 2, t.TempDir())
			s.Add("shop", 1, dir, tc.launches...)
			z := backend(t, config(t, s))
			endpoint, err := z.Start(t.Context())
			if got := s.Calls("startBrowser"); got != tc.starts {
				t.Errorf("%d launches, want %d", got, tc.starts)
			}
			if _, err := os.Stat(lock); (err != nil) != (tc.starts > 1) {
				t.Errorf("the profile's lock: %v", err)
			}
			if tc.kind != "" {
				wantKind(t, err, tc.kind)
				if s.Open("shop") {
					t.Error("a launch that was given up is still open")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(endpoint.WS)
			if err != nil || u.Hostname() != "127.0.0.1" || !strings.HasPrefix(u.Path, "/devtools/browser/") || u.Port() == "1" {
				t.Errorf("address %s, want the API's host and the port that it named", endpoint.WS)
			}
		})
	}
}

// A store that is open is not started again: that would replace it. One that
// is gone gets a new port.
func TestReplacedOnlyWhenGone(t *testing.T) {
	s := double(t)
	s.Add("shop", 1, "")
	cfg := config(t, s)
	var ends []lifecycle.End
	cfg.Gate = func(_ context.Context, after lifecycle.End, _ string) (func(error), error) {
		ends = append(ends, after)
		return func(error) {}, nil
	}
	z := backend(t, cfg)
	first, err := z.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := z.Start(t.Context())
	if err != nil || again.WS != first.WS || s.Calls("startBrowser") != 1 {
		t.Fatalf("second start: %s, %v, %d launches", again.WS, err, s.Calls("startBrowser"))
	}
	s.Crash("shop")
	if z.Probe(t.Context()) == nil {
		t.Error("probe of a store that is gone: no error")
	}
	next, err := z.Start(t.Context())
	if err != nil || next.WS == first.WS || next.Incarnation == first.Incarnation {
		t.Errorf("after the crash: %+v, %v", next, err)
	}
	if fmt.Sprint(ends) != fmt.Sprint([]lifecycle.End{lifecycle.EndNone, lifecycle.EndCrash}) {
		t.Errorf("launches follow %q", ends)
	}
	if r := z.Stop(t.Context()); r.Method != lifecycle.MethodGraceful || !r.Verified || r.DataRisk || s.Open("shop") {
		t.Errorf("receipt %+v", r)
	}
	if r := z.Stop(t.Context()); r.Method != lifecycle.MethodNone {
		t.Errorf("second stop: %+v", r)
	}
	if s.Calls("closeBrowser") != 0 {
		t.Error("closeBrowser does not exist")
	}
}

// A client that takes calls and answers none holds nobody up: the store that
// is still open is on the receipt, and can be closed later.
func TestStopOfMuteClient(t *testing.T) {
	s := double(t)
	s.Add("shop", 1, "")
	cfg := config(t, s)
	cfg.Timing.Try = 300 * time.Millisecond
	z := backend(t, cfg)
	if _, err := z.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Delay(time.Hour)
	done := make(chan lifecycle.Receipt, 1)
	go func() { done <- z.Stop(context.Background()) }()
	select {
	case r := <-done:
		if r.Verified || !r.DataRisk {
			t.Errorf("receipt of a store that is open: %+v", r)
		}
	case <-time.After(20 * time.Second):
		s.CloseClientConnections()
		t.Fatal("the stop still waits")
	}
	s.Delay(0)
	if r := z.Stop(t.Context()); !r.Verified || r.DataRisk || s.Open("shop") {
		t.Errorf("receipt afterwards: %+v", r)
	}
}

func TestRefusals(t *testing.T) {
	s := double(t)
	s.Add("shop", 1, "")
	cfg := config(t, s)

	s.Deny("no permission for WebDriver")
	_, err := backend(t, cfg).Start(t.Context())
	if f := wantKind(t, err, lifecycle.ZiniaoDenied); !strings.Contains(f.Text, "no permission for WebDriver") {
		t.Errorf("%q does not say what the client says", f.Text)
	}
	s.Deny("")

	other := cfg
	other.Profile = "nowhere"
	_, err = backend(t, other).Start(t.Context())
	wantKind(t, err, lifecycle.ProfileInvalid)

	other = cfg
	other.Profile = "1" // the number serves as well
	z := backend(t, other)
	if _, err := z.Start(t.Context()); err != nil {
		t.Error(err)
	}
	z.Stop(t.Context())

	other = cfg
	other.Addr = "127.0.0.1:1"
	_, err = backend(t, other).Start(t.Context())
	wantKind(t, err, lifecycle.ZiniaoUnreachable)

	s.Delay(10 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = backend(t, cfg).Start(ctx)
	wantKind(t, err, lifecycle.LaunchTimeout)
}

func TestCheck(t *testing.T) {
	s := double(t)
	addr := strings.TrimPrefix(s.URL, "http://")
	if err := Check(t.Context(), addr, account); err != nil {
		t.Error(err)
	}
	wantKind(t, Check(t.Context(), addr, Account{"acme", "op", "wrong"}), lifecycle.ZiniaoDenied)
	wantKind(t, Check(t.Context(), "127.0.0.1:1", account), lifecycle.ZiniaoUnreachable)
}

// Slow answers are waited for, as long as the start may take.
func TestSlowClient(t *testing.T) {
	s := double(t)
	s.Add("shop", 1, "")
	s.Delay(100 * time.Millisecond)
	if _, err := backend(t, config(t, s)).Start(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOneAccountForEachMachine(t *testing.T) {
	s := double(t)
	s.Add("shop", 1, "")
	cfg := config(t, s)
	z := backend(t, cfg)
	if _, err := z.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := cfg
	second.Store, second.Account.Username = "bazaar", "somebody else"
	_, err := backend(t, second).Start(t.Context())
	if f := wantKind(t, err, lifecycle.AccountConflict); !strings.HasSuffix(f.Text, fmt.Sprintf("by shop (pid %d)", os.Getpid())) {
		t.Errorf("%q does not name the store", f.Text)
	}
	third := cfg
	third.Store = "corner"
	if _, err := backend(t, third).Start(t.Context()); err != nil {
		t.Errorf("a store of the same account: %v", err)
	}
	fourth := second // of another state directory
	fourth.Store, fourth.Record = cfg.Store, filepath.Join(t.TempDir(), "shop.ziniao.json")
	_, err = backend(t, fourth).Start(t.Context())
	wantKind(t, err, lifecycle.AccountConflict)
	backend(t, third).leave()

	z.Stop(t.Context())
	_, err = backend(t, second).Start(t.Context())
	wantKind(t, err, lifecycle.ZiniaoDenied) // the double knows one account; the guard let it pass
}

// Marks of processes that are gone do not count, also when their pid is used.
func TestGuardForgetsTheDead(t *testing.T) {
	s := double(t)
	s.Add("shop", 1, "")
	cfg := config(t, s)
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	id := proc.Identify(cmd.Process.Pid)
	for name, e := range map[string]entry{
		"reused":  {"reused", "x", proc.ID{PID: id.PID, Ticks: id.Ticks + 1}, proc.Boot()},
		"another": {"another", "x", id, "an earlier boot"},
	} {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cfg.Guard, "ziniao-"+name+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backend(t, cfg).Start(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReadAccount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "account.json")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		os.Remove(path)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"company":"acme","username":"op","password":"secret"}`, 0o600)
	if a, err := ReadAccount(path); err != nil || a != account {
		t.Errorf("%+v, %v", a, err)
	}
	for text, mode := range map[string]os.FileMode{
		`{"company":"acme","username":"op","password":"secret"} `: 0o644,
		`{"company":"acme","username":"op"}`:                      0o600,
		`{"password":"secret`:                                     0o600,
	} {
		write(text, mode)
		if _, err := ReadAccount(path); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The next proxy takes over what the last one opened, since to open it again
// would replace it; but not another browser that has its port by now.
func TestOpenStoreIsAdopted(t *testing.T) {
	s := double(t)
	s.Add("shop", 1, "")
	cfg := config(t, s)
	cfg.Record = filepath.Join(t.TempDir(), "shop.ziniao.json")
	if found, err := backend(t, cfg).Recover(t.Context()); found || err != nil {
		t.Errorf("recover without a record: %v, %v", found, err)
	}
	first, err := backend(t, cfg).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	next := backend(t, cfg)
	if found, err := next.Recover(t.Context()); !found || err != nil {
		t.Errorf("recover: %v, %v", found, err)
	}
	again, err := next.Start(t.Context())
	if err != nil || again.WS != first.WS || again.Incarnation != first.Incarnation || !again.Adopted || s.Calls("startBrowser") != 1 {
		t.Errorf("adopted %+v, %v, want %+v; %d launches", again, err, first, s.Calls("startBrowser"))
	}

	for name, change := range map[string]func(*record){
		"another browser on the port": func(r *record) { r.WS += "0" },
		"another store":               func(r *record) { r.Profile = "bazaar" },
		"another account":             func(r *record) { r.Account = "x" },
		"nobody on the port":          func(r *record) { r.Port = 1 },
	} {
		data, err := os.ReadFile(cfg.Record)
		if err != nil {
			t.Fatal(err)
		}
		var r record
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if data, err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cfg.Record, data, 0o600); err != nil {
			t.Fatal(err)
		}
		launches := s.Calls("startBrowser")
		if e, err := backend(t, cfg).Start(t.Context()); err != nil || e.Adopted || s.Calls("startBrowser") != launches+1 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}

	// One that only ends what was left, too.
	if r := backend(t, cfg).Stop(t.Context()); r.Method != lifecycle.MethodGraceful || !r.Verified || s.Open("shop") {
		t.Errorf("stop of what an earlier proxy opened: %+v", r)
	}
	if _, err := os.Stat(cfg.Record); err == nil {
		t.Error("the record outlives the store")
	}
}
