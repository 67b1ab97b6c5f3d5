package main_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// snippet is a block of the README that says how a client connects.
type snippet struct{ language, client, text string }

var snippetBlock = regexp.MustCompile("(?ms)^```(\\w+) ([\\w-]+)\n(.*?)^```$")

// What the README says of each client's connecting works as it stands there,
// but for the port and the address of the page.
func TestReadmeSnippets(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var snippets []snippet
	var missing []string
	for _, match := range snippetBlock.FindAllStringSubmatch(string(readme), -1) {
		snippets = append(snippets, snippet{match[1], match[2], match[3]})
	}
	for _, l := range libraries {
		if !slices.ContainsFunc(snippets, func(s snippet) bool { return s.client == l.name }) {
			missing = append(missing, l.name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the README does not say how to connect with %v", missing)
	}

	m := serve(t)
	site := proxytest.StartSite(t)
	for _, s := range snippets {
		t.Run(s.client, func(t *testing.T) {
			text := strings.NewReplacer("127.0.0.1:9400", m.addr, "https://example.com/", site.URL+"/title?t=found").Replace(s.text)
			var out string
			if s.language == "json" {
				out = s.serve(t, text, site.URL+"/title?t=found")
			} else {
				out = s.run(t, text)
			}
			if !strings.Contains(out, "found") {
				t.Errorf("want the page's title, got %q", out)
			}
		})
	}
}

// run runs a snippet as its reader would, with its client installed.
func (s snippet) run(t *testing.T, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	home := tempHome(t)
	dir := filepath.Join(home, "snippet") // Go takes no module in the temporary directory itself
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := library{name: s.client}
	switch s.language {
	case "js":
		if err := os.Symlink(filepath.Join(clientsDir(t), s.client, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		put("snippet.mjs", text)
		l.command = []string{"node", "snippet.mjs"}
	case "python":
		put("snippet.py", text)
		l.command = []string{"python", "snippet.py"}
	case "go":
		for _, name := range []string{"go.mod", "go.sum"} {
			module, err := os.ReadFile(filepath.Join(clientsDir(t), name))
			if err != nil {
				t.Fatal(err)
			}
			put(name, string(module))
		}
		put("main.go", text)
		l.command = []string{"go", "run", "."}
	case "sh":
		l.command = []string{"sh", "-ec", text}
	default:
		t.Fatalf("no way to run %q", s.language)
	}
	cmd := s.prepare(t, l.cmd(ctx, t, home))
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	mustLeaveNothing(t, home)
	if err != nil {
		t.Errorf("%v\n%s\nit wrote:\n%s", err, out, tail(stderr.String(), 30))
	}
	return string(out)
}

// prepare puts the programs of a client that npm installed on the PATH, and
// gives Go its caches, which lie in the real HOME.
func (s snippet) prepare(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	path := []string{filepath.Join(clientsDir(t), s.client, "node_modules", ".bin"), pythonDir(t), os.Getenv("PATH")}
	cmd.Env = append(cmd.Env, "PATH="+strings.Join(path, string(os.PathListSeparator)))
	for _, name := range []string{"GOCACHE", "GOPATH", "GOMODCACHE"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(value)))
	}
	return cmd
}

// serve starts the MCP server of a configuration, has it open a page, and
// returns its answer.
func (s snippet) serve(t *testing.T, text, page string) string {
	t.Helper()
	var config struct {
		Servers map[string]struct{ Args []string } `json:"mcpServers"`
	}
	decode(t, []byte(text), &config)
	args := config.Servers["chrome"].Args
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := library{name: s.client, command: append([]string{filepath.Join(clientsDir(t), s.client, "node_modules", ".bin", args[0])}, args[1:]...)}
	cmd := l.cmd(ctx, t, tempHome(t))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		cancel()
		_ = cmd.Wait()
	}()
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"new_page","arguments":{"url":"` + page + `"}}}`,
	} {
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), `"id":2`) {
			return lines.Text()
		}
	}
	t.Fatal("no answer of the MCP server")
	return ""
}
