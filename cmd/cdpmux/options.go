package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/lifecycle/ziniao"
	"cdpmux/proxy/download"
	"cdpmux/wrapper"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	store, id, home, listen string
	door                    doorOptions

	browser, upstream, windows, onExit choice
	endpoint                           string
	chrome                             chrome.Config
	ziniao                             ziniao.Config
	ziniaoAccount                      string
	eager                              bool
	startTimeout                       seconds

	browserIdle, relaunchWindow, lockWait seconds
	relaunchMax                           uint

	grace, requestTimeout seconds
	tabCap                uint
	tabCapPolicy          choice

	downloads        choice
	downloadRoots    []string
	archiveDownloads bool

	maxClients               uint
	allowClearing            bool
	allowHosts, allowOrigins []string
	allowSchemes             []string
	policyFile, auditFile    string

	web, noWrapper bool
	reap           bool
	workerSlots    uint
	slotsGiven     bool

	logLevel, logFormat choice
}

func newServeOptions() *serveOptions {
	return &serveOptions{
		browser:      oneOf("chrome", "attach", "ziniao"),
		upstream:     oneOf("ws", "pipe"),
		windows:      oneOf("client", "tab", "shared"),
		onExit:       oneOf("close", "keep"),
		startTimeout: seconds(180 * time.Second),

		browserIdle:    seconds(300 * time.Second),
		relaunchWindow: seconds(600 * time.Second),
		lockWait:       seconds(60 * time.Second),

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
	f.StringVar(&o.listen, "listen", "", "`ADDR` to serve on, 127.0.0.1:PORT or unix:PATH, remembered for the store; port 0 picks one for this run (default: the store's port)")
	o.door.bind(f)
	f.Var(&o.browser, "browser", "run a Chrome of our own, attach to one that runs, or open a store of the Ziniao client")
	f.StringVar(&o.endpoint, "endpoint", "", "with --browser attach: `URL` of that browser, http://HOST:PORT or ws://HOST:PORT/PATH")
	f.Var(&o.upstream, "upstream", "how our own Chrome is reached: by a port that it opens on loopback, or by a pipe only")
	f.StringVar(&o.ziniao.Addr, "ziniao-addr", "", "with --browser ziniao: `HOST:PORT` of that client's API, as 127.0.0.1:16851")
	f.StringVar(&o.ziniao.Profile, "ziniao-profile", "", "with --browser ziniao: the store there, its browser `ID` or oauth")
	f.StringVar(&o.ziniaoAccount, "ziniao-account", "", "with --browser ziniao: `FILE`, 0600, JSON with company, username and password")
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
	f.Var(&o.onExit, "on-exit", "what becomes of the browser and the clients' tabs when the proxy stops: keep leaves them to the next one, for --grace")
	f.Var(&o.startTimeout, "start-timeout", "how long a browser may take to start, as 90s or 90; 0 is no limit")
	f.Var(&o.downloads, "downloads", "where finished downloads go: the store's directory, or one per client in it")
	f.StringSliceVar(&o.downloadRoots, "download-roots", nil, "directories `DIR,…` under which a client may have its downloads linked (default: the store's downloads, and the system's temporary directory)")
	f.BoolVar(&o.archiveDownloads, "archive-downloads", true, "move earlier downloads to _prev/<time> when the browser starts")
	f.Var(&o.browserIdle, "browser-idle", "stop a browser that nobody has used for so long; 0 never does")
	f.UintVar(&o.relaunchMax, "relaunch-max", 3, "starts of a browser that ended by itself, within --relaunch-window; 0 is no limit")
	f.Var(&o.relaunchWindow, "relaunch-window", "see --relaunch-max; 0 is no limit")
	f.Var(&o.lockWait, "lock-wait", "how long a browser waits for its turn to start on this machine")
	f.BoolVar(&o.allowClearing, "allow-clearing", false, "let clients wipe cookies that all share")
	f.StringSliceVar(&o.allowSchemes, "allow-scheme", nil, "let clients load addresses of scheme `S`: file, chrome, devtools, view-source, …; may be repeated")
	f.StringVar(&o.policyFile, "policy", "", "`FILE`, JSON, of what clients may not do, or may do besides")
	f.StringVar(&o.auditFile, "audit", "", "`FILE` that each decision on a command is added to, a line of JSON")
	f.StringSliceVar(&o.allowHosts, "allow-host", nil, "name or IP address `H` that a Host header may have besides those of this machine; may be repeated")
	f.StringSliceVar(&o.allowOrigins, "allow-origin", nil, "web origin `O` that may connect; may be repeated")
	f.UintVar(&o.workerSlots, "worker-slots", uint(wrapper.Defaults().Slots), "workers `N` that a call of the wrapper may name; 0 is none")
	f.BoolVar(&o.reap, "reap", false, "every five minutes, end the browser-harness daemons that agents of this store have left")
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
	case o.upstream.value == "pipe" && o.browser.value != "chrome":
		return errors.New("--upstream pipe is for --browser chrome only")
	case o.onExit.value == "keep" && o.browser.value == "ziniao":
		return errors.New("--on-exit keep is not for --browser ziniao: that store is closed with its proxy")
	case o.onExit.value == "keep" && o.browser.value == "chrome" && o.grace == 0:
		return errors.New("--on-exit keep needs --grace above 0: for so long the browser waits for the next proxy")
	case o.workerSlots > wrapper.MaxSlots:
		return fmt.Errorf("--worker-slots %d: at most %d", o.workerSlots, wrapper.MaxSlots)
	}
	if _, err := storeSlug(o.store, o.id, o.web); err != nil {
		return err
	}
	if _, err := o.rules(); err != nil {
		return err
	}
	if _, err := o.backend(zerolog.Nop(), nil, places{}); err != nil {
		return err
	}
	if err := checkListen(o.listen); err != nil {
		return err
	}
	return o.door.check(o.listen)
}

// places are where a store's browser is found: by the next proxy, and by this one.
type places struct{ record, upstream, ziniao string }

// backend joins the flags to the browser they ask for. gate and places are for
// a browser of ours; without them it is only checked whether that can be.
func (o *serveOptions) backend(log zerolog.Logger, gate lifecycle.Gate, at places) (lifecycle.Backend, error) {
	if o.browser.value == "attach" {
		return lifecycle.NewAttach(o.endpoint)
	}
	if o.browser.value == "ziniao" {
		cfg := o.ziniao
		cfg.Log, cfg.Gate, cfg.Record = log, gate, at.ziniao
		var err error
		if cfg.Store, err = storeSlug(o.store, o.id, o.web); err != nil {
			return nil, err
		}
		if cfg.Account, err = ziniao.ReadAccount(o.ziniaoAccount); err != nil {
			return nil, fmt.Errorf("--ziniao-account: %w", err)
		}
		return ziniao.New(cfg)
	}
	cfg := o.chrome
	cfg.Log, cfg.Gate, cfg.Record, cfg.Grace = log, gate, at.record, time.Duration(o.grace)
	if o.upstream.value == "pipe" {
		cfg.Upstream = at.upstream
	}
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
		stderr = zerolog.ConsoleWriter{Out: stderr, TimeFormat: time.TimeOnly, NoColor: !isTerminal(stderr), FormatMessage: plainMessage}
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
