package wrapper

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Format is the number of the script's format. It grows with every change of
// the script: an older one is written anew, a newer one is left alone.
const Format = 2

// Web is the slug of the browser without a store.
const Web = "_web"

// Name is what an agent types.
const Name = "browser-use"

// Script says what one store's script is made of.
type Script struct {
	Slug   string // or Web
	ID     string // the store's
	Addr   string // host:port of the store's proxy
	Home   string // state directory, absolute
	Cdpmux string // the program that `ensure` is asked of, absolute
	Settings

	// How long a start may take, and the polling after it; the zero values are
	// those of the contract.
	startLimit, polls time.Duration
}

// Settings are what an operator chooses for a store's script.
type Settings struct {
	Real      string        // the real browser-use, absolute (FindReal)
	StartURL  string        // POST this to have the browser started, instead of `cdpmux ensure`
	TokenFile string        // with StartURL: file with the bearer token, absolute
	Slots     int           // workers that --worker may name, 0 to 99
	Timeout   time.Duration // limit of one call, in whole seconds
	AnyTask   bool          // session names take any task id, not only one that begins with 8 hex digits
}

// Defaults are the settings of a store that nobody chose any for; Real is missing.
func Defaults() Settings { return Settings{Slots: 3, Timeout: 120 * time.Second} }

// MaxSlots is the most workers a store may have: their number has two digits.
const MaxSlots = 99

// maxSocket is the longest path a Unix socket may have on every system.
const maxSocket = 103

var slugForm = regexp.MustCompile(`^([a-z0-9]+(-[a-z0-9]+)*|_web)$`)

//go:embed script.sh.tmpl
var scriptText string

var scriptTemplate = template.Must(template.New("script").Funcs(template.FuncMap{
	"quote": quote, "word": word,
}).Parse(scriptText))

// Render returns the script.
func (s Script) Render() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := scriptTemplate.Execute(&b, s); err != nil {
		return nil, fmt.Errorf("wrapper of %s: %w", s.Slug, err)
	}
	return b.Bytes(), nil
}

func (s Script) check() error {
	switch {
	case !slugForm.MatchString(s.Slug) || len(s.Slug) > maxSlug:
		return fmt.Errorf("%q is no slug of a store", s.Slug)
	case s.ID == "":
		return fmt.Errorf("store %s has no id", s.Slug)
	case s.Slots < 0 || s.Slots > MaxSlots:
		return fmt.Errorf("%d worker slots: 0 to %d are possible", s.Slots, MaxSlots)
	case s.Timeout < time.Second || s.Timeout%time.Second != 0:
		return fmt.Errorf("time limit %s: at least 1s, in whole seconds", s.Timeout)
	case s.TokenFile != "" && s.StartURL == "":
		return errors.New("a token file is for a start URL, which is missing")
	}
	for what, path := range map[string]string{"state directory": s.Home, "cdpmux": s.Cdpmux, "browser-use": s.Real} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s %q: an absolute path is needed", what, path)
		}
	}
	if s.TokenFile != "" && !filepath.IsAbs(s.TokenFile) {
		return fmt.Errorf("token file %q: an absolute path is needed", s.TokenFile)
	}
	if host, _, err := net.SplitHostPort(s.Addr); err != nil || net.ParseIP(host) == nil {
		return fmt.Errorf("address %q: want IP:PORT, which is all that browser-use can connect to", s.Addr)
	}
	if s.StartURL != "" {
		if err := checkStartURL(s.StartURL); err != nil {
			return err
		}
	}
	return s.checkSocket()
}

// checkStartURL lets no token travel in the clear, except within this machine.
func checkStartURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return fmt.Errorf("start URL %q: want https://HOST/PATH or http://127.0.0.1:PORT/PATH", text)
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme == "https" || u.Scheme == "http" && loopback {
		return nil
	}
	return fmt.Errorf("start URL %q: want https, or http to this machine", text)
}

// checkSocket refuses a state directory so deep that the daemon could not make
// its socket there.
func (s Script) checkSocket() error {
	home := s.Home
	if real, err := filepath.EvalSymlinks(home); err == nil && len(real) > len(home) {
		home = real // the daemon resolves it
	}
	session := s.Base() + "-00000000"
	if s.Slots > 0 {
		session += "-w" + strconv.Itoa(s.Slots)
	}
	if path := filepath.Join(home, "run", "bu-"+session+".sock"); len(path) > maxSocket {
		return fmt.Errorf("the daemon's socket would be %s: %d bytes, at most %d are possible; choose a shorter --home or store name",
			path, len(path), maxSocket)
	}
	return nil
}

// The methods below are for the template.

func (s Script) Format() string { return strconv.Itoa(Format) }

// Base is what the names of the store's sessions begin with.
func (s Script) Base() string { return strings.TrimPrefix(s.Slug, "_") }

// Ensure are the flags that name the store to cdpmux.
func (s Script) Ensure() []string {
	if s.Slug == Web {
		return []string{"--web"}
	}
	return []string{"--store", s.Slug, "--id", s.ID}
}

// Which is Ensure for people.
func (s Script) Which() string { return strings.Join(s.Ensure(), " ") }

func (s Script) Seconds() string { return wholeSeconds(s.Timeout) }

// TaskForm is the extended regular expression of a task's part of a session name.
func (s Script) TaskForm() string {
	if s.AnyTask {
		return "[A-Za-z0-9_]{1,8}"
	}
	return "[0-9a-fA-F]{8}"
}

func (s Script) StartSeconds() string {
	if s.startLimit == 0 {
		return "90"
	}
	return wholeSeconds(s.startLimit)
}

func (s Script) Polls() string {
	if s.polls == 0 {
		return "60"
	}
	return wholeSeconds(s.polls)
}

func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// quote makes one word of bash out of any value.
func quote(value any) (string, error) {
	text := fmt.Sprint(value)
	if strings.Contains(text, "\x00") {
		return "", fmt.Errorf("%q has a NUL, which bash cannot hold", text)
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'", nil
}

var wordForm = regexp.MustCompile(`^[A-Za-z0-9._:\[\]%-]{1,100}$`)

// word is for comments, where nothing can be quoted.
func word(text string) (string, error) {
	if !wordForm.MatchString(text) {
		return "", fmt.Errorf("%q cannot stand in a comment", text)
	}
	return text, nil
}
