package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/proxy"
	"cdpmux/routing"
)

func serveCommand() *cobra.Command {
	o := newServeOptions()
	cmd := &cobra.Command{
		Use:   "serve (--store NAME | --web)",
		Short: "Serve one store: its browser, for many clients",
		Long: `Serve one store: its browser, for many clients.

The browser is started when the first client needs it. Ctrl-C or SIGTERM stops
both, gently. Each flag --a-b can also be given as variable CDPMUX_A_B; the flag
wins.`,
		Example: `  cdpmux serve --store shop
  cdpmux serve --store shop --headless
  cdpmux serve --store mine --browser attach --endpoint http://127.0.0.1:9222
  cdpmux serve --store shop --listen 0.0.0.0:9400 --tls-cert cert.pem --tls-key key.pem --public-url https://host.example:9400`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags()); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			o.slotsGiven = cmd.Flags().Changed("worker-slots")
			signals := stopSignals()
			defer signal.Stop(signals)
			if err := serve(o, cmd.OutOrStdout(), o.logger(cmd.ErrOrStderr()), signals); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

// stopSignals are those that ask for an orderly end. Whoever reads the log may
// go away first: by default Go would end the proxy at its next line to a
// closed pipe, and leave the browser behind.
func stopSignals() chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signals
}

// shutdownWait bounds the goodbye to the clients. With the ladder that ends
// the browser it stays below the 30 s that a service manager waits.
const shutdownWait = 5 * time.Second

// serve runs one store's proxy until a signal comes or the proxy fails.
func serve(o *serveOptions, stdout io.Writer, log zerolog.Logger, signals <-chan os.Signal) (err error) {
	limitMemory()
	slug, err := storeSlug(o.store, o.id, o.web)
	if err != nil {
		return err
	}
	home, err := openHome(o.home)
	if err != nil {
		return err
	}
	lock, err := home.Lock(slug)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	store, err := home.OpenStore(slug, o.id)
	if err != nil {
		return err
	}
	if o.browser.value == "chrome" && o.chrome.Profile == "" {
		if o.chrome.Profile, err = home.Profile(slug); err != nil {
			return err
		}
	}
	life, err := newLife(o, home, slug, log)
	if err != nil {
		return err
	}
	record, err := home.RecordFile(slug)
	if err != nil {
		return err
	}
	upstream, err := home.UpstreamSocket(slug)
	if err != nil {
		return err
	}
	opened, err := home.ZiniaoFile(slug)
	if err != nil {
		return err
	}
	backend, err := o.backend(log, life.Gate, places{record, upstream, opened})
	if err != nil {
		return err
	}
	life.Use(backend)
	windows, err := routing.ParseWindowPolicy(o.windows.value)
	if err != nil {
		return err
	}
	admin, err := home.MakeAdminToken(slug)
	if err != nil {
		return err
	}
	token, err := home.StoreToken(slug)
	if err != nil {
		return err
	}
	tabs, err := home.TabsFile(slug)
	if err != nil {
		return err
	}
	downloads, err := o.openDownloads(home, slug)
	if err != nil {
		return err
	}
	rules, err := o.rules()
	if err != nil {
		return err
	}
	audit, err := o.openAudit(log)
	if err != nil {
		return err
	}
	defer func() {
		if err := audit.Close(); err != nil {
			log.Error().Err(err).Msg("close the audit")
		}
	}()
	listener, err := listen(store, &o.door, o.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	o.ownWrapper(home, store, listener.Addr(), log)
	if o.browser.value == "chrome" && os.Geteuid() == 0 && !o.chrome.NoSandbox {
		log.Warn().Msg("Chrome does not run as root with its sandbox: serve as another user, or add --no-sandbox")
	}

	keeper, _ := backend.(interface{ KeepLastPage() bool })
	sessions := &leases{life: life, log: log, keep: o.onExit.value == "keep", ours: o.browser.value != "attach"}
	config := proxy.Config{
		Store:        slug + "/" + store.ID,
		MaxClients:   int(o.maxClients),
		AllowHosts:   o.allowHosts,
		AllowOrigins: o.allowOrigins,
		Router: routing.Config{
			Windows: windows, AllowClearing: o.allowClearing, RequestTimeout: time.Duration(o.requestTimeout),
			KeepLastPage: keeper != nil && keeper.KeepLastPage(),
			AllowSchemes: o.allowSchemes, Rules: rules,
			TabCap: int(o.tabCap), RejectTabs: o.tabCapPolicy.value == "reject",
			FirstID: 1e9 + rand.Int32N(1e9), // of a pipe's proxies, each is the same client to Chrome
		},
		Logger:     log,
		Grace:      time.Duration(o.grace),
		StateFile:  tabs,
		KeepTabs:   o.onExit.value == "keep",
		Attached:   o.browser.value == "attach",
		AdminToken: admin, Auth: proxy.Auth{Token: token},
		Audit:     audit,
		Downloads: downloads, ArchiveDownloads: o.archiveDownloads && o.browser.value != "attach",
		Leases:       sessions,
		Life:         life.forProxy(o.browser.value != "attach"),
		StartTimeout: time.Duration(o.startTimeout),
	}
	if err := o.door.configure(&config, listenAddr(listener.Addr()), log); err != nil {
		return err
	}
	server := proxy.New(config)
	if err := sessions.open(o, home, store, server); err != nil {
		return err
	}
	manager := newNotifier(log)
	defer manager.end()
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		manager.stopping()
		if e := stop(cancel, server, sessions, o.keeps(backend), log, signals); err == nil {
			err = e
		}
	}()

	us, err := o.door.announcement(listener)
	if err == nil {
		err = lock.Announce(us)
	}
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	go life.run(ctx, server)
	go o.reapOwn(ctx, home, store, server, log)
	go func() { sessions.run(ctx, takeOver(ctx, backend, server, log)) }()
	ready := make(chan error, 1)
	go func() { ready <- o.startEarly(ctx, server, log) }()
	for {
		select {
		case err := <-ready:
			if err != nil {
				return err
			}
			fmt.Fprint(stdout, readyText(slug, us))
			if us.Auth {
				log.Info().Msg("clients need a token: cdpmux url prints an address that has it")
			}
			manager.ready(server)
		case err := <-served:
			return fmt.Errorf("serve %s: %w", listener.Addr(), err)
		case sig := <-signals:
			log.Info().Stringer("signal", sig).Msg("stopping")
			return nil
		}
	}
}

// takeOver connects to a browser that an earlier proxy left, so that the tabs
// of clients that do not come back are closed in time.
func takeOver(ctx context.Context, backend lifecycle.Backend, server *proxy.Server, log zerolog.Logger) error {
	left, ok := backend.(interface {
		Recover(context.Context) (bool, error)
	})
	if !ok {
		return nil
	}
	found, err := left.Recover(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Error().Err(err).Msg("what an earlier proxy left could not be taken over")
	case found:
		server.Wake()
	}
	return err
}

// keeps is how the browser is ended with the proxy: not at all with --on-exit keep.
func (o *serveOptions) keeps(backend lifecycle.Backend) func() lifecycle.Receipt {
	if c, ok := backend.(*chrome.Chrome); ok && o.onExit.value == "keep" {
		return func() lifecycle.Receipt {
			c.Leave()
			return lifecycle.Receipt{Method: lifecycle.MethodNone, Verified: true}
		}
	}
	return func() lifecycle.Receipt { return backend.Stop(context.Background()) }
}

// startEarly has the browser up before the store is called ready, with --eager.
// One that an earlier proxy left and that does not answer yet is no reason to
// end: the server seeks it, and replaces it in the end.
func (o *serveOptions) startEarly(ctx context.Context, server interface {
	Up(context.Context) (cold bool, err error)
}, log zerolog.Logger) error {
	if !o.eager {
		return nil
	}
	_, err := server.Up(ctx)
	var f *lifecycle.Failure
	if o.browser.value == "chrome" && errors.As(err, &f) && f.Kind == lifecycle.BrowserUnreachable {
		log.Warn().Err(err).Msg("the browser does not answer yet; it is being sought")
		return nil
	}
	return err
}

// stop says goodbye to the clients, then ends the browser in peace: what it
// has not written yet, logins above all, would be lost. No signal hurries it.
func stop(cancel context.CancelFunc, server *proxy.Server, sessions *leases, end func() lifecycle.Receipt, log zerolog.Logger, signals <-chan os.Signal) error {
	cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-signals:
				log.Warn().Msg("already stopping: the browser gets up to 20 s to save its logins")
			case <-done:
				return
			}
		}
	}()
	verified := false
	pending := sessions.close(func() bool {
		ctx, cancelWait := context.WithTimeout(context.Background(), shutdownWait)
		defer cancelWait()
		if err := server.Shutdown(ctx); err != nil {
			log.Warn().Err(err).Msg("clients were cut off")
		}
		receipt := end()
		if receipt.Method != lifecycle.MethodNone {
			log.Info().Interface("receipt", receipt).Msg("browser stopped")
		}
		verified = receipt.Verified
		return verified
	})
	if !verified || pending > 0 {
		return errNotVerified
	}
	return nil
}

// limitMemory makes the collector keep the process below 256 MiB where it can,
// unless GOMEMLIMIT says otherwise: replies of many MiB pass through, and by
// default garbage may double what is in use.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(256 << 20)
	}
}
