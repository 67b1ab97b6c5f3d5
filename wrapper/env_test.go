package wrapper

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the agent's environment has in store for our tools changes nothing, and
// none of it reaches browser-use.
func TestHostileEnvironment(t *testing.T) {
	t.Parallel()
	attack := absolute(t, "testdata/attack.sh")
	for name, env := range map[string][]string{
		"BASH_ENV": {"BASH_ENV=" + attack},
		"ENV":      {"ENV=" + attack},
		"exported functions": {
			"BASH_FUNC_curl%%=() { touch pwned; }", "BASH_FUNC_perl%%=() { touch pwned; }", "BASH_FUNC_command%%=() { touch pwned; }",
			"BASH_FUNC_unset%%=() { touch pwned; }", "BASH_FUNC_exec%%=() { touch pwned; }", "BASH_FUNC_set%%=() { touch pwned; }",
			"BASH_FUNC_printf%%=() { touch pwned; }", "BASH_FUNC_builtin%%=() { touch pwned; }", "BASH_FUNC_die%%=() { touch pwned; }",
			"BASH_FUNC_od%%=() { touch pwned; }", "BASH_FUNC_mkdir%%=() { touch pwned; }", "BASH_FUNC_true%%=() { touch pwned; }",
			"BASH_FUNC_export%%=() { touch pwned; }", "BASH_FUNC_read%%=() { touch pwned; }", "BASH_FUNC_exit%%=() { touch pwned; }",
		},
		"PERL5OPT":             {"PERL5OPT=-MEvil", "PERL5LIB=" + filepath.Dir(attack)},
		"perl's layers":        {"PERL_UNICODE=SDA", "PERLIO=:crlf"},
		"options of bash":      {"SHELLOPTS=noclobber:nounset:allexport:noglob", "BASHOPTS=nocasematch:extglob"},
		"compatible bash":      {"BASH_COMPAT=3.1", "POSIXLY_CORRECT=1"},
		"our variables":        {"CDPMUX_HOME=/elsewhere", "CDPMUX_STORE=mall", "CDPMUX_LISTEN=127.0.0.1:1"},
		"proxies":              {"http_proxy=http://127.0.0.1:1", "HTTPS_PROXY=x", "ALL_PROXY=x", "all_proxy=x", "no_proxy=x", "NO_PROXY=x"},
		"cloud":                {"BROWSER_USE_API_KEY=secret"},
		"daemon's directories": {"BH_RUNTIME_DIR=/elsewhere", "BH_TMP_DIR=/elsewhere", "BH_RUNTIME_DIR_SHARED=0"},
		"names of ours":        {"mux_real=/bin/false", "mux_addr=1.2.3.4:1", "mux_slug=mall", "mux_tail=-w9", "mux_args=x", "mux_start=http://127.0.0.1:1", "IFS=/"},
		"missing locale":       {"LC_ALL=xx_XX.UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, nil)
			p.env = append(append(p.env, "CDPMUX_TASK_ID=1a2b3c4d"), env...)
			got := p.call(t, "--worker", "2", "a")
			if name == "missing locale" { // bash complains before it reads the script
				got.stderr = ""
			}
			if got.code != 0 || got.stdout != "" || got.stderr != "" {
				t.Fatalf("want a call as any other, got %v", got)
			}
			if _, err := os.Stat(filepath.Join(p.dir, "pwned")); err == nil {
				t.Error("the environment's code ran in the place of a tool")
			}
			mustEqual(t, "arguments", "a\x00", p.note(t, "args"))
			seen := p.toolEnv(t)
			mustEqual(t, "BU_NAME", "shop-1a2b3c4d-w2", seen["BU_NAME"])
			mustEqual(t, "BU_CDP_WS", "ws://127.0.0.1:9400/client-1a2b3c4d-w2", seen["BU_CDP_WS"])
			mustEqual(t, "BH_RUNTIME_DIR", p.script.Home+"/run", seen["BH_RUNTIME_DIR"])
			mustEqual(t, "NO_PROXY", "127.0.0.1,localhost,::1", seen["NO_PROXY"])
			for _, gone := range []string{
				"BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB", "PERL_UNICODE", "PERLIO", "PERL_BADLANG", "SHELLOPTS", "BASHOPTS", "CDPMUX_HOME", "CDPMUX_STORE", "CDPMUX_LISTEN",
				"http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy", "no_proxy", "BROWSER_USE_API_KEY", "BU_AUTOSPAWN",
			} {
				if value, ok := seen[gone]; ok {
					t.Errorf("%s=%s reached browser-use", gone, value)
				}
			}
			if !strings.Contains(p.note(t, "ensure"), "\x00"+p.script.Home+"\x00") {
				t.Errorf("arguments of cdpmux: %q", p.note(t, "ensure"))
			}
		})
	}
}

// The same where curl is used, and the tool that shows what curl got.
func TestHostileStart(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		{"BASH_ENV=" + absolute(t, "testdata/attack.sh")},
		{"BASH_FUNC_curl%%=() { touch pwned; }", "BASH_FUNC_perl%%=() { touch pwned; }", "BASH_FUNC_tr%%=() { touch pwned; }", "BASH_FUNC_command%%=() { touch pwned; }"},
		{"http_proxy=http://127.0.0.1:1", "ALL_PROXY=http://127.0.0.1:1", "CURL_HOME=" + absolute(t, "testdata")},
	} {
		m := startMachine(t)
		p := m.post(t)
		m.set(func() {
			m.answer = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }
		})
		p.env = append(p.env, env...)
		got := p.call(t)
		if got.code != 1 || got.stderr != "ERROR: browser start API failed (HTTP 503)\nbusy\n" {
			t.Errorf("%q: want what the start API says, got %v", env, got)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "pwned")); err == nil {
			t.Errorf("%q: the environment's code ran in the place of a tool", env)
		}
	}
}

// Everything else in the environment is the caller's own and stays.
func TestEnvironmentPassesThrough(t *testing.T) {
	p := newPost(t, nil)
	p.env = append(p.env, "SLUG=a", "LC_ALL=C.UTF-8", "LANG=C", "TASK=b", "PYTHONPATH=c", "CDPMUX_TASK_ID=1a2b3c4d", "CAFE=ü\n店")
	if got := p.call(t); got.code != 0 {
		t.Fatal(got)
	}
	seen := p.toolEnv(t)
	for _, each := range p.env {
		name, value, _ := strings.Cut(each, "=")
		mustEqual(t, name, value, seen[name])
	}
	for name := range seen {
		if strings.HasPrefix(name, "mux_") {
			t.Errorf("%s of ours reached browser-use", name)
		}
	}
}
