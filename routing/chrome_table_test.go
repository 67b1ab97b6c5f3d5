package routing_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"cdpmux/routing"
)

// The installed browser must answer each text of testdata/commands.txt as the
// file says. When a new version does not, ScanCommand has to follow it.
func TestChromeAnswersAsTheTableSays(t *testing.T) {
	conn := dialChrome(t)
	created := ask(t, conn, `{"id":1,"method":"Target.createTarget","params":{"url":"about:blank"}}`)
	target := regexp.MustCompile(`[0-9A-F]{32}`).FindString(created)
	for _, row := range readCommands(t) {
		got := ask(t, conn, strings.ReplaceAll(row.text, "$TARGET", target))
		want, open := strings.CutSuffix(strings.ReplaceAll(row.chrome, "$TARGET", target), "…")
		if got != want && !(open && strings.HasPrefix(got, want)) {
			t.Errorf("%s\n got %s\nwant %s", row.source, got, want)
		}
	}
}

// Of texts made by chance from the table's, ScanCommand takes none that the
// browser refuses or reads otherwise, and it refuses in the browser's words.
func TestChromeAgreesOnMutations(t *testing.T) {
	conn := dialChrome(t)
	rows := readCommands(t)
	random := rand.New(rand.NewPCG(1, 2)) // the same texts each time
	for range 5000 {
		text := rows[random.IntN(len(rows))].text
		if len(text) > 200 || strings.Contains(text, "Target.") {
			continue // deep nesting; methods that do something
		}
		for range 1 + random.IntN(3) {
			text = mutate(random, text)
		}
		var env routing.Envelope
		refusal := routing.ScanCommand([]byte(text), &env)
		want := outcome(&env, refusal)
		if refusal == nil {
			want = fmt.Sprintf(`{"id":%d,"error":{"code":-32601,"message":"'%s' wasn't found"}}`, env.ID, inError(env.Method))
			if env.Session != nil {
				want = fmt.Sprintf(`{"id":%d,"error":{"code":-32001,"message":"Session with given id not found."}}`, env.ID)
			}
		}
		got := ask(t, conn, text)
		if withoutCBOR(got) != withoutCBOR(want) && !(refusal != nil && stricter(text)) {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

// stricter tells whether a text has what ScanCommand alone refuses.
func stricter(text string) bool {
	return !utf8.ValidString(text) || strings.Contains(text, `""`) ||
		regexp.MustCompile(`(?s)(tru|fals)[^e]|nul[^l]`).MatchString(text)
}

// inError is how the browser writes a method in its error.
func inError(method []byte) string {
	quoted := string(routing.AppendQuoted(nil, method))
	return quoted[1 : len(quoted)-1]
}

// mutate puts a piece of JSON, or of the text itself, into the text, over none or some of it.
func mutate(random *rand.Rand, text string) string {
	pieces := strings.Split(`{ } [ ] , : " \ \" \u0069 \u00e9 \ud800 \x41 \v / // /**/ - + . e 0 1 00 1.5 1e3 1e999 -0 true false null tru `+
		`"id" "method" "params" "sessionId" "id":8, "method":"X.z", "params":[], "params":null, "sessionId":"NO", "targetId":"T", "":1, é {} []`, " ")
	pieces = append(pieces, " ", "\t", "\v", "\f", "\x00", "\x1f", "\x7f", "\xa0", "\xff", "\xed\xa0\x80", "")
	piece := pieces[random.IntN(len(pieces))]
	if random.IntN(6) == 0 && text != "" {
		i := random.IntN(len(text))
		piece = text[i : i+random.IntN(len(text)-i)]
	}
	i := random.IntN(len(text) + 1)
	j := i
	if random.IntN(2) == 0 {
		j = min(len(text), i+random.IntN(4))
	}
	return text[:i] + piece + text[j:]
}

// ask sends a text and returns the reply to it; events are passed over.
func ask(t *testing.T, conn *websocket.Conn, text string) string {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatal(err)
	}
	for {
		_, reply, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("no reply to %q: %v", text, err)
		}
		if !strings.HasPrefix(string(reply), `{"method":`) {
			return string(reply)
		}
	}
}

// dialChrome starts a browser that lives as long as the test, and two minutes at most.
func dialChrome(t *testing.T) *websocket.Conn {
	t.Helper()
	args := []string{"--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--user-data-dir=" + t.TempDir()}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, findChrome(t), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, lines) // until the last process of the group has gone, and no longer writes to the profile
		_ = cmd.Wait()
	})
	var said strings.Builder
	for {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if address, found := strings.CutPrefix(strings.TrimSpace(line), "DevTools listening on "); found {
			conn, _, err := websocket.DefaultDialer.Dial(address, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		if err != nil {
			t.Fatalf("%s ended and said:\n%s", cmd.Path, said.String())
		}
	}
}

func findChrome(t *testing.T) string {
	t.Helper()
	names := []string{"/usr/lib/chromium/chromium", "chromium", "google-chrome", "google-chrome-stable"}
	if chosen := os.Getenv("CDPMUX_CHROME"); chosen != "" {
		names = []string{chosen}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("no browser among %q: install chromium or google-chrome-stable, or set CDPMUX_CHROME to one", names)
	return ""
}
