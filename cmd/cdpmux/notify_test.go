package main

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/proxy"

	"os"
)

// manager stands in for systemd.
func manager(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	return conn
}

func told(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestNotify(t *testing.T) {
	conn := manager(t)
	t.Setenv("WATCHDOG_USEC", "100000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	server := proxy.New(proxy.Config{Store: "shop/1", Logger: zerolog.Nop()})
	n := newNotifier(zerolog.Nop())
	n.ready(server)
	if got, want := told(t, conn), "READY=1\nSTATUS=browser stopped, 0 clients, 0 tabs"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	for range 2 {
		if got := told(t, conn); !strings.HasPrefix(got, "WATCHDOG=1\nSTATUS=") {
			t.Errorf("told %q, want the watchdog served", got)
		}
	}
	n.stopping()
	for got := told(t, conn); got != "STOPPING=1\nSTATUS=stopping"; got = told(t, conn) {
		if !strings.HasPrefix(got, "WATCHDOG=1\n") {
			t.Fatalf("told %q", got)
		}
	}
	told(t, conn) // served until the very end
	n.end()
}

func TestNotifyNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n := newNotifier(zerolog.Nop())
	n.ready(proxy.New(proxy.Config{Logger: zerolog.Nop()}))
	n.stopping()
	n.end()
}
