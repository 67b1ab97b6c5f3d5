package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cdpmux/lifecycle"
)

// listen takes the address, which is the one remembered for the store if none
// is given; never another one in its place. One that is given is remembered,
// but for port 0. The caller holds the store's lock.
func listen(store *lifecycle.Store, door *doorOptions, given string) (net.Listener, error) {
	addr := given
	if given == "" {
		var err error
		if addr, err = store.Addr(); err != nil {
			return nil, err
		}
		if err := door.fits(addr); err != nil {
			return nil, err
		}
	}
	want, err := resolve(addr)
	if err != nil {
		return nil, err
	}
	if err := store.MayHave(want); err != nil {
		return nil, err
	}
	var listener net.Listener
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		listener, err = lifecycle.ListenUnix(path)
	} else if listener, err = net.Listen(network(addr), addr); errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%s is in use by another program; free it, or choose another address with --listen", addr)
	}
	if err != nil {
		return nil, err
	}
	if given != "" && !anyPort(want) {
		if err := store.Remember(listener.Addr()); err != nil {
			listener.Close()
			return nil, err
		}
	}
	return listener, nil
}

// network keeps 0.0.0.0 from meaning every IPv6 address, too.
func network(addr string) string {
	if at, err := netip.ParseAddrPort(addr); err == nil && at.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}

// rememberListen makes addr the store's, as serve --listen does.
func rememberListen(store *lifecycle.Store, addr string) error {
	want, err := resolve(addr)
	if err != nil || anyPort(want) {
		return err
	}
	return store.Remember(want)
}

func resolve(addr string) (net.Addr, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return &net.UnixAddr{Name: path, Net: "unix"}, nil
	}
	return net.ResolveTCPAddr("tcp", addr)
}

// anyPort reports whether the system is to choose a port.
func anyPort(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.Port == 0
}

// checkListen refuses what is no address to listen on. An empty one is none.
func checkListen(addr string) error {
	if addr == "" {
		return nil
	}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return fmt.Errorf("--listen %s: give the whole path of the socket, from /", addr)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--listen %s: give it as 127.0.0.1:PORT, or as unix:PATH", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--listen %s: %q is no port", addr, port)
	}
	if _, err := netip.ParseAddr(host); host != "" && host != "localhost" && err != nil {
		return fmt.Errorf("--listen %s: %q is no IP address of this machine; give 127.0.0.1:PORT", addr, host)
	}
	return nil
}

// listenAddr is a listener's address in the form that --listen takes.
func listenAddr(addr net.Addr) string {
	if _, ok := addr.(*net.UnixAddr); ok {
		return "unix:" + addr.String()
	}
	return addr.String()
}

// reach is where this machine reaches a listener: one on every address is on
// loopback, too.
func reach(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return listenAddr(addr)
	}
	host := "127.0.0.1"
	if tcp.IP.To4() == nil {
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
