package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"cdpmux/proxy/proxytest"
)

var update = flag.Bool("update", false, "run the client libraries on a bare Chromium and write what they do there into testdata/clients/golden")

// library is a client library and its scenario in testdata/clients/<name>.
type library struct {
	name     string
	command  []string // run in that folder, with an endpoint and the site's URL as further arguments
	endpoint string   // by which it reaches the proxy: %s stands for host:port
}

var libraries = []library{
	{"playwright", []string{"node", "scenario.mjs"}, "http://%s/client-playwright"},
	{"puppeteer", []string{"node", "scenario.mjs"}, "ws://%s/client-puppeteer"},
	{"cri", []string{"node", "scenario.mjs"}, "ws://%s/client-cri"},
	{"devtools-mcp", []string{"node", "scenario.mjs"}, "ws://%s/client-devtools-mcp"},
	{"agent-browser", []string{"node", "scenario.mjs"}, "ws://%s/client-agent-browser"},
	// Any other address it replaces by what it finds at /json/version.
	{"chromedp", []string{"./chromedp"}, "ws://%s/devtools/browser/chromedp"},
	{"rod", []string{"./rod"}, "ws://%s/client-rod"},
	{"harness", []string{"sh", "scenario.sh"}, "ws://%s/client-harness"},
	{"browser-use", []string{"python", "scenario.py"}, "http://%s/client-browser-use"},
}

// unhurried are flags that Playwright and Puppeteer give to a Chrome that they
// start. Without them a tab that another one hides may take seconds for its
// picture, or never give one, whoever drives it.
var unhurried = []string{
	"--chrome-arg=--disable-backgrounding-occluded-windows",
	"--chrome-arg=--disable-renderer-backgrounding",
	"--chrome-arg=--disable-background-timer-throttling",
}

// Each client library does, step by step, the same on a Chromium of its own
// (recorded in testdata/clients/golden), through the proxy alone, and through
// the proxy beside noisy neighbours, of whom it hears nothing, nor they of it.
func TestClientLibraries(t *testing.T) {
	m := serve(t, unhurried...)
	site := proxytest.StartSite(t)
	var table strings.Builder
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(columns, "client\tdirectly\talone\tbeside neighbours\n")

	want := map[string][]stepDone{}
	verdicts := map[string][]string{}
	for _, each := range libraries {
		t.Run(each.name, func(t *testing.T) {
			want[each.name] = each.golden(t, m, site)
			verdicts[each.name] = append(verdicts[each.name], verdict(want[each.name], want[each.name]))
			got := each.run(t, fmt.Sprintf(each.endpoint, m.addr), site)
			mustEqualSteps(t, want[each.name], got)
			verdicts[each.name] = append(verdicts[each.name], verdict(want[each.name], got))
		})
	}
	neighbours := startNeighbours(t, m)
	mustProveTheOracle(t, m, neighbours)
	for _, each := range libraries {
		t.Run(each.name+" beside neighbours", func(t *testing.T) {
			recorder := record(t, m.addr)
			got := each.run(t, fmt.Sprintf(each.endpoint, recorder.addr), site)
			mustEqualSteps(t, want[each.name], got)
			verdicts[each.name] = append(verdicts[each.name], verdict(want[each.name], got))
			for _, leak := range neighbours.leaks(recorder.received(), site) {
				t.Error(leak)
			}
		})
	}
	neighbours.stop(t)

	for _, each := range libraries {
		fmt.Fprintf(columns, "%s\t%s\n", each.name, strings.Join(verdicts[each.name], "\t"))
	}
	_ = columns.Flush()
	t.Logf("steps that went as on a Chromium of their own:\n%s", &table)
}

// stepDone is one line that a scenario prints.
type stepDone struct {
	Step  string          `json:"step"`
	OK    bool            `json:"ok"`
	Got   json.RawMessage `json:"got,omitempty"`
	Error string          `json:"error,omitempty"`
}

func (s stepDone) String() string {
	if !s.OK {
		return s.Step + ": error: " + s.Error
	}
	return s.Step + ": " + string(s.Got)
}

// skipped reports whether the client has no means for this step.
func (s stepDone) skipped() bool { return string(s.Got) == `"-"` }

func mustEqualSteps(t *testing.T, want, got []stepDone) {
	t.Helper()
	for i, step := range want {
		if i == len(got) {
			t.Errorf("step %s: not reached", step.Step)
			return
		}
		if got[i].String() != step.String() {
			t.Errorf("step %q:\nwant %s\n got %s", step.Step, step, got[i])
		}
	}
}

// verdict counts the steps that went as wanted, and names the others.
func verdict(want, got []stepDone) string {
	var equal, all int
	var wrong []string
	for i, step := range want {
		switch {
		case step.skipped():
			continue
		case i < len(got) && got[i].String() == step.String():
			equal++
		default:
			wrong = append(wrong, step.Step)
		}
		all++
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", equal, all, strings.Join(wrong, ", ")))
}

// golden is what the library does on a bare Chromium of this version. What has
// not been recorded yet is recorded now.
func (l library) golden(t *testing.T, m *mux, site *proxytest.Site) (steps []stepDone) {
	t.Helper()
	path := filepath.Join(clientsDir(t), "golden", l.name+"."+m.browserMajor(t)+".json")
	recorded, err := os.ReadFile(path)
	if err == nil && !*update {
		decode(t, recorded, &steps)
		return steps
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	// Without its first tab: a client of the proxy starts without one, too.
	steps = l.run(t, proxytest.StartChromium(t, "--no-startup-window").WS, site)
	var text bytes.Buffer
	for i, step := range steps {
		if !step.OK {
			t.Fatalf("%s on a bare Chromium, which is not the proxy's fault: %s", l.name, step)
		}
		line, err := json.Marshal(step)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
		text.Write(line)
	}
	text.WriteString("\n]\n")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("recorded %s", path)
	return steps
}

// run runs the scenario to its end or to its first step that fails, and checks
// that it leaves no process behind.
func (l library) run(t *testing.T, endpoint string, site *proxytest.Site) (done []stepDone) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	home := tempHome(t)
	cmd := l.cmd(ctx, t, home, endpoint, site.URL)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	mustLeaveNothing(t, home)

	// The site's ports differ from run to run.
	out = bytes.ReplaceAll(out, []byte(site.URL), []byte("http://site"))
	out = bytes.ReplaceAll(out, []byte(site.Other), []byte("http://other"))
	for line := range bytes.Lines(out) {
		var step stepDone
		if err := json.Unmarshal(line, &step); err != nil {
			t.Fatalf("%s printed %q: want a JSON line for each step", l.name, line)
		}
		var compact bytes.Buffer // Python writes spaces
		_ = json.Compact(&compact, step.Got)
		step.Got = compact.Bytes()
		done = append(done, step)
	}
	steps := stepNames(t)
	for i, step := range done {
		if i == len(steps) || step.Step != steps[i] {
			t.Fatalf("%s: step %d is %q; want the steps of steps.txt in their order", l.name, i+1, step.Step)
		}
	}
	failed := len(done) > 0 && !done[len(done)-1].OK
	if !failed && (err != nil || len(done) < len(steps)) {
		t.Errorf("%s: %v after %d steps of %d; it wrote:\n%s", l.name, err, len(done), len(steps), tail(stderr.String(), 40))
	}
	return done
}

// cmd is the library's command, with a home of its own for the sockets, logs
// and files of what it starts.
func (l library) cmd(ctx context.Context, t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, l.program(t), append(slices.Clone(l.command[1:]), args...)...)
	cmd.Dir = filepath.Join(clientsDir(t), l.name)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "XDG_RUNTIME_DIR="+home, "XDG_CONFIG_HOME="+home,
		"PATH="+pythonDir(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// program is the path of what l.command names.
func (l library) program(t *testing.T) string {
	t.Helper()
	switch name := l.command[0]; name {
	case "./chromedp", "./rod":
		if err := buildGoClients(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(binaryDir, name)
	case "python":
		return filepath.Join(pythonDir(t), name)
	default:
		return name
	}
}

var buildGoClients = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-o", binaryDir, "./chromedp", "./rod")
	cmd.Dir = filepath.Join("..", "..", "testdata", "clients")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", cmd.Dir, err, out)
	}
	return nil
})

// clientsDir is testdata/clients, with the clients in it installed.
func clientsDir(t *testing.T) string { return root(t, "testdata", "clients") }

// pythonDir holds the programs of the Python clients.
func pythonDir(t *testing.T) string { return root(t, ".cache", "venv", "bin") }

// root is a path below the repository's root that must be there.
func root(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run scripts/setup, which installs the client libraries", err)
	}
	return path
}

func stepNames(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(clientsDir(t), "steps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// mustLeaveNothing waits for the daemons that have this HOME to end; those that do not are killed.
func mustLeaveNothing(t *testing.T, home string) {
	t.Helper()
	var left []int
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if left = processesWith(home); len(left) == 0 {
			return
		}
	}
	for _, pid := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		t.Errorf("left behind: process %d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processesWith are the pids of the processes that have this HOME.
func processesWith(home string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, _ := os.ReadFile(path)
		if bytes.Contains(environ, []byte("\x00HOME="+home+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// browserMajor is the first number of the version of the Chromium behind.
func (m *mux) browserMajor(t *testing.T) string {
	t.Helper()
	var version struct{ Browser string }
	decode(t, get(t, m.http("/json/version")), &version)
	match := regexp.MustCompile(`/(\d+)\.`).FindStringSubmatch(version.Browser)
	if match == nil {
		t.Fatalf("version of the browser: want Chrome/<number>…, got %q", version.Browser)
	}
	return match[1]
}
