package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/proxy/download"
	"cdpmux/wrapper"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	store, id, home, listen string

	browser, windows, onExit choice
	endpoint                 string
	chrome                   chrome.Config
	eager                    bool
	startTimeout             seconds

	grace, requestTimeout seconds
	tabCap                uint
	tabCapPolicy          choice

	downloads        choice
	downloadRoots    []string
	archiveDownloads bool

	maxClients               uint
	allowClearing            bool
	allowHosts, allowOrigins []string

	web, noWrapper bool
	workerSlots    uint
	slotsGiven     bool

	logLevel, logFormat choice
}

func newServeOptions() *serveOptions {
	return &serveOptions{
		browser:      oneOf("chrome", "attach"),
		windows:      oneOf("client", "tab", "shared"),
		onExit:       oneOf("close", "keep"),
		startTimeout: seconds(180 * time.Second),

		grace:          seconds(480 * time.Second),
		requestTimeout: seconds(30 * time.Minute),
		tabCapPolicy:   oneOf("lru", "reject"),

		downloads: oneOf("store", "client"),

		logLevel:  oneOf("info", "trace", "debug", "warn", "error"),
		logFormat: oneOf("console", "json"),
	}
}

func (o *serveOptions) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.store, "store", "", "`NAME` of the store: one browser profile, made on first use")
	f.StringVar(&o.id, "id", "", "`ID` of the store (default: a random one, kept)")
	f.BoolVar(&o.web, "web", false, "serve the browser without a store, instead of --store; log in nowhere with it")
	f.StringVar(&o.listen, "listen", "", "loopback `ADDR` to serve on, remembered for the store; port 0 picks one for this run (default: the store's port)")
	f.Var(&o.browser, "browser", "run a Chrome of our own, or attach to one that runs")
	f.StringVar(&o.endpoint, "endpoint", "", "with --browser attach: `URL` of that browser, http://HOST:PORT or ws://HOST:PORT/PATH")
	f.StringVar(&o.chrome.Path, "chrome", "", "`PATH` of Chrome or Chromium (default: look for one)")
	f.StringArrayVar(&o.chrome.Args, "chrome-arg", nil, "one more argument `ARG` for Chrome; may be repeated")
	f.StringVar(&o.chrome.Profile, "profile", "", "`DIR` of Chrome's profile (default: the store's own)")
	f.BoolVar(&o.chrome.Headless, "headless", false, "run Chrome without a window")
	f.BoolVar(&o.chrome.NoSandbox, "no-sandbox", false, "run Chrome without its sandbox, as root must")
	f.BoolVar(&o.eager, "eager", false, "start the browser now, not with the first client")
	f.BoolVar(&o.chrome.ForgetSessionCookies, "forget-session-cookies", false, "let logins without an expiry end with the browser")
	f.UintVar(&o.maxClients, "max-clients", 16, "at most `N` clients at once; 0 is no limit")
	f.Var(&o.windows, "windows", "what gets a window of its own: each client, each tab, or none")
	f.Var(&o.grace, "grace", "how long the tabs of a client that left wait for it; 0 closes them at once")
	f.UintVar(&o.tabCap, "tab-cap", 12, "tabs a client may have; 0 is no limit")
	f.Var(&o.tabCapPolicy, "tab-cap-policy", "at one tab too many: close the one used least recently, or refuse it")
	f.Var(&o.requestTimeout, "request-timeout", "how long a command may stay unanswered by the browser; 0 is no limit")
	f.Var(&o.onExit, "on-exit", "what becomes of the clients' tabs when the proxy stops; keep needs --browser attach")
	f.Var(&o.startTimeout, "start-timeout", "how long a browser may take to start, as 90s or 90; 0 is no limit")
	f.Var(&o.downloads, "downloads", "where finished downloads go: the store's directory, or one per client in it")
	f.StringSliceVar(&o.downloadRoots, "download-roots", nil, "directories `DIR,…` under which a client may have its downloads linked (default: the store's downloads, and the system's temporary directory)")
	f.BoolVar(&o.archiveDownloads, "archive-downloads", true, "move earlier downloads to _prev/<time> when the browser starts")
	f.BoolVar(&o.allowClearing, "allow-clearing", false, "let clients wipe cookies that all share")
	f.StringSliceVar(&o.allowHosts, "allow-host", nil, "name `H` that a Host header may have, besides localhost and IP addresses; may be repeated")
	f.StringSliceVar(&o.allowOrigins, "allow-origin", nil, "web origin `O` that may connect; may be repeated")
	f.UintVar(&o.workerSlots, "worker-slots", uint(wrapper.Defaults().Slots), "workers `N` that a call of the wrapper may name; 0 is none")
	f.BoolVar(&o.noWrapper, "no-wrapper", false, "do not write the store's wrapper")
	f.StringVar(&o.home, "home", "", "state directory `DIR` (default: ~/.cdpmux)")
	f.Var(&o.logLevel, "log-level", "least `LEVEL` that is logged: trace, debug, info, warn, error")
	f.Var(&o.logFormat, "log-format", "form of the log on stderr")
}

// check refuses what cannot work, before anything is touched.
func (o *serveOptions) check() error {
	switch {
	case o.browser.value == "attach" && o.endpoint == "":
		return errors.New("--browser attach needs --endpoint")
	case o.browser.value != "attach" && o.endpoint != "":
		return errors.New("--endpoint needs --browser attach")
	case o.workerSlots > wrapper.MaxSlots:
		return fmt.Errorf("--worker-slots %d: at most %d", o.workerSlots, wrapper.MaxSlots)
	case o.onExit.value == "keep" && o.browser.value != "attach":
		return errors.New("--on-exit keep needs --browser attach: in this version a Chrome of our own ends with the proxy, and its tabs with it")
	}
	if _, err := storeSlug(o.store, o.id, o.web); err != nil {
		return err
	}
	if _, err := o.backend(zerolog.Nop()); err != nil {
		return err
	}
	return checkListen(o.listen)
}

// checkListen lets through what only this machine can reach.
func checkListen(addr string) error {
	if addr == "" {
		return nil
	}
	if strings.HasPrefix(addr, "unix:") {
		return fmt.Errorf("--listen %s: this version serves TCP only; give 127.0.0.1:PORT", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--listen %s: give it as 127.0.0.1:PORT", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--listen %s: %q is no port", addr, port)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s: other machines could reach it, and access tokens have to come first; give 127.0.0.1:PORT", addr)
	}
	return nil
}

// backend joins the flags to the browser they ask for.
func (o *serveOptions) backend(log zerolog.Logger) (lifecycle.Backend, error) {
	if o.browser.value == "attach" {
		return lifecycle.NewAttach(o.endpoint)
	}
	cfg := o.chrome
	cfg.Log = log
	return chrome.New(cfg)
}

// openDownloads opens the store's download directory.
func (o *serveOptions) openDownloads(home *lifecycle.Home, slug string) (*download.Store, error) {
	dir, err := home.Downloads(slug)
	if err != nil {
		return nil, err
	}
	return download.Open(download.Config{Dir: dir, PerClient: o.downloads.value == "client", Roots: o.downloadRoots})
}

func (o *serveOptions) logger(stderr io.Writer) zerolog.Logger {
	level, err := zerolog.ParseLevel(o.logLevel.value)
	if err != nil {
		panic(err) // the flag takes levels only
	}
	zerolog.DurationFieldInteger = true
	if o.logFormat.value == "console" {
		stderr = zerolog.ConsoleWriter{Out: stderr, TimeFormat: time.TimeOnly, NoColor: !isTerminal(stderr)}
	}
	return zerolog.New(stderr).Level(level).With().Timestamp().Logger()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}

// openHome opens the state directory, by default that of the user.
func openHome(dir string) (*lifecycle.Home, error) {
	if dir == "" {
		var err error
		if dir, err = lifecycle.DefaultHome(); err != nil {
			return nil, err
		}
	}
	return lifecycle.OpenHome(dir)
}
