package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionLine(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}
	for _, tc := range []struct {
		commit string
		info   *debug.BuildInfo
		want   string
	}{
		{"", nil, "cdpmux dev commit unknown unknown"},
		{"", info, "cdpmux dev commit abc (modified) go1"},
		{"def", info, "cdpmux dev commit def go1"},
	} {
		commit = tc.commit
		if got := versionLine(tc.info); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	commit = ""
}

// A release made twice is the same to the byte, whatever the umask and the
// time zone, and has all that belongs into it.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds twice: not with -short")
	}
	t.Parallel()
	target := runtime.GOOS + "/" + runtime.GOARCH
	name := "cdpmux-v0.0.1-test-" + runtime.GOOS + "-" + runtime.GOARCH
	var archives [2][]byte
	for i, umask := range []string{"022", "077"} {
		dist := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "umask "+umask+"; exec ../../scripts/release v0.0.1-test "+target)
		cmd.Env = append(os.Environ(), "DIST="+dist, "TZ=Pacific/Auckland")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("scripts/release: %v\n%s", err, out)
		}
		var err error
		if archives[i], err = os.ReadFile(filepath.Join(dist, name+".tar.gz")); err != nil {
			t.Fatal(err)
		}
		sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
		if err != nil || !strings.HasSuffix(string(sums), "  "+name+".tar.gz\n") {
			t.Errorf("SHA256SUMS: %s, %v", sums, err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two releases of one commit differ")
	}
	z, err := gzip.NewReader(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s: owner %d:%d, mode %o", h.Name, h.Uid, h.Gid, h.Mode)
		}
		have[strings.TrimPrefix(h.Name, name+"/")] = true
		if h.Name != name+"/cdpmux" {
			continue
		}
		binary := filepath.Join(t.TempDir(), "cdpmux")
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(binary, text, 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), binary, "version").Output()
		head, _ := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
		if err != nil || !strings.HasPrefix(string(out), "cdpmux v0.0.1-test commit "+strings.TrimSpace(string(head))) {
			t.Errorf("version of the release: %s, %v", out, err)
		}
	}
	for _, file := range []string{
		"cdpmux", "README.md", "LICENSE", "CHANGELOG.md", "man/man1/cdpmux-serve.1", "systemd/cdpmux@.service",
		"completions/cdpmux.bash", "completions/_cdpmux", "completions/cdpmux.fish",
	} {
		if !have[file] {
			t.Errorf("no %s in the release", file)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "../../scripts/release", "1.2").CombinedOutput(); err == nil || !strings.Contains(string(out), "give it as v1.2.3") {
		t.Errorf("version 1.2: %v, %s", err, out)
	}
}

// The container's file cannot be built in every place where the tests run: it
// is held to what the product counts on.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile("../../scripts/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	last := map[string]string{}
	for line := range strings.Lines(joined) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD":
		default:
			t.Errorf("instruction %q", line)
		}
		last[word] = strings.TrimSpace(rest)
	}
	for word, want := range map[string]string{"USER": "10001", "STOPSIGNAL": "SIGTERM", "ENTRYPOINT": `["cdpmux"]`, "CMD": `["serve"]`} {
		if last[word] != want {
			t.Errorf("%s %s, want %s: SIGTERM has to reach the proxy, which is nobody's root", word, last[word], want)
		}
	}
	if !strings.HasSuffix(last["HEALTHCHECK"], `CMD ["cdpmux", "status"]`) {
		t.Errorf("HEALTHCHECK %s", last["HEALTHCHECK"])
	}
	// Each variable is a flag of serve's, and takes its value.
	serve := serveCommand().Flags()
	for _, kv := range strings.Fields(last["ENV"]) {
		name, value, _ := strings.Cut(kv, "=")
		flag, ours := strings.CutPrefix(name, "CDPMUX_")
		if !ours {
			continue
		}
		if err := serve.Set(strings.ToLower(strings.ReplaceAll(flag, "_", "-")), value); err != nil {
			t.Errorf("%s: %v", kv, err)
		}
	}
}
