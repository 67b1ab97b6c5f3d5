package main

import (
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"cdpmux/proxy"
	"cdpmux/proxy/admin"
)

// notifyStatus is how often a service manager without a watchdog is told how
// the store is.
const notifyStatus = 30 * time.Second

// notifier tells systemd how serve is (sd_notify). Where no service manager
// listens, it does nothing.
type notifier struct {
	log  zerolog.Logger
	done chan struct{} // closed by end
}

func newNotifier(log zerolog.Logger) *notifier { return &notifier{log, make(chan struct{})} }

func (n *notifier) tell(state string) (told bool) {
	told, err := daemon.SdNotify(false, state)
	if err != nil {
		n.log.Warn().Err(err).Msg("the service manager could not be told")
	}
	return told
}

// ready says that the store is served, and goes on saying how it is. A proxy
// that is stuck on its own lock cannot, and the watchdog ends it.
func (n *notifier) ready(server *proxy.Server) {
	if !n.tell(daemon.SdNotifyReady + "\n" + statusLine(server.Status())) {
		return
	}
	pause := notifyStatus
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn().Err(err).Msg("the service manager's watchdog is not served")
	}
	if watchdog > 0 {
		pause = watchdog / 2
	}
	go func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				n.tell(daemon.SdNotifyWatchdog + "\n" + statusLine(server.Status()))
			case <-n.done:
				return
			}
		}
	}()
}

// stopping says that the end has begun. The watchdog goes on being served: the
// browser may take its time.
func (n *notifier) stopping() { n.tell(daemon.SdNotifyStopping + "\nSTATUS=stopping") }

func (n *notifier) end() { close(n.done) }

// statusLine is what systemctl status shows.
func statusLine(st admin.Status) string {
	connected, tabs := 0, 0
	for _, c := range st.Clients {
		if c.Connections > 0 {
			connected++
		}
		tabs += len(c.Tabs)
	}
	return plain(fmt.Sprintf("STATUS=browser %s, %d clients, %d tabs", st.Browser.State, connected, tabs))
}
