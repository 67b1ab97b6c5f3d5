package main

import (
	"net"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"cdpmux/proxy"
)

// doorOf parses flags as serve does, with an address among them or not.
func doorOf(t *testing.T, flags string) (*serveOptions, error) {
	t.Helper()
	o := newServeOptions()
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.bind(set)
	if err := set.Parse(strings.Fields("--store t " + flags)); err != nil {
		t.Fatal(err)
	}
	return o, o.check()
}

func TestWhereACredentialIsRequired(t *testing.T) {
	for flags, want := range map[string]bool{
		"":                                                   false,
		"--listen 127.0.0.1:9400":                            false,
		"--listen 127.8.8.8:9400":                            false,
		"--listen [::1]:9400":                                false,
		"--listen localhost:0":                               false,
		"--listen unix:/run/x/s":                             false,
		"--listen 0.0.0.0:9400":                              true,
		"--listen [::]:9400":                                 true,
		"--listen :9400":                                     true,
		"--listen 192.0.2.1:9400":                            true,
		"--listen [::ffff:192.0.2.1]:9400":                   true,
		"--listen 127.0.0.1:9400 --auth token":               true,
		"--listen unix:/run/x/s --auth token":                true,
		"--listen 127.0.0.1:9400 --auth none":                false,
		"--listen unix:/run/x/s --auth none":                 false,
		"--trusted-proxy 127.0.0.1":                          true,
		"--public-url https://cdp.example.com/a":             true,
		"--public-url http://localhost:8080":                 false,
		"--public-url http://[::1]:8080":                     false,
		"--public-url https://cdp.example.com/a --auth none": false, // that proxy asks, says the operator
	} {
		o, err := doorOf(t, flags)
		if err != nil {
			t.Errorf("%q: %v", flags, err)
		} else if got := o.door.required(o.listen); got != want {
			t.Errorf("%q: required %v, want %v", flags, got, want)
		}
	}
}

// What another proxy has sent on is let in without a credential only by an
// operator who has said so.
func TestWhereForwardedRequestsNeedACredential(t *testing.T) {
	for flags, want := range map[string]bool{
		"":                          true,
		"--listen unix:/run/x/s":    true,
		"--auth none":               false,
		"--public-url http://[::1]": false,
	} {
		o, err := doorOf(t, flags)
		if err != nil {
			t.Fatal(err)
		}
		var c proxy.Config
		if err := o.door.configure(&c, o.listen, zerolog.Nop()); err != nil || c.Auth.Required || c.Auth.Forwarded != want {
			t.Errorf("%q: %+v, %v; want %v", flags, c.Auth, err, want)
		}
	}
}

func TestDoorFlagsRefused(t *testing.T) {
	for flags, words := range map[string]string{
		"--auth none --listen 0.0.0.0:9400":                   "any machine could use the logins",
		"--auth none --listen [::]:9400":                      "any machine could use the logins",
		"--auth none --listen :9400":                          "any machine could use the logins",
		"--auth none --listen 192.0.2.1:9400":                 "any machine could use the logins",
		"--listen example.com:9400":                           "no IP address",
		"--listen 127.0.0.1":                                  "127.0.0.1:PORT",
		"--listen 127.0.0.1:http":                             "no port",
		"--listen unix:s":                                     "whole path",
		"--listen unix:/a/../b":                               "whole path",
		"--listen unix:":                                      "whole path",
		"--tls-cert /c":                                       "go together",
		"--tls-key /k":                                        "go together",
		"--tls-cert /c --tls-key /k --listen unix:/run/x/s":   "leave --tls-cert away",
		"--trusted-proxy 10.0.0.0/33":                         "want a network",
		"--trusted-proxy example.com":                         "want a network",
		"--public-url cdp.example.com":                        "--public-url",
		"--public-url ws://cdp.example.com":                   "--public-url",
		"--public-url https://":                               "--public-url",
		"--public-url https://cdpmux:secret@cdp.example.com/": "--public-url",
		"--public-url https://cdp.example.com/?token=x":       "--public-url",
		"--public-url https://cdp.example.com/#x":             "--public-url",
	} {
		_, err := doorOf(t, flags)
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q in it", flags, err, words)
		}
	}
}

// What a store has remembered is looked at like what is given.
func TestRememberedAddressIsNotOpened(t *testing.T) {
	d := startDouble(t)
	if err := d.store.Remember(&net.TCPAddr{IP: net.IPv4zero, Port: 1}); err != nil {
		t.Fatal(err)
	}
	o, err := doorOf(t, "--auth none")
	if err != nil {
		t.Fatal(err)
	}
	if l, err := listen(d.store, &o.door, ""); err == nil || !strings.Contains(err.Error(), "--auth none with --listen 0.0.0.0:1") {
		t.Errorf("listener %v, %v", l, err)
	}
}

func TestReach(t *testing.T) {
	for want, addr := range map[string]net.Addr{
		"127.0.0.1:1":     &net.TCPAddr{IP: net.IPv4zero, Port: 1},
		"[::1]:1":         &net.TCPAddr{IP: net.IPv6unspecified, Port: 1},
		"192.0.2.1:1":     &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1},
		"[2001:db8::1]:1": &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1},
		"unix:/run/s":     &net.UnixAddr{Name: "/run/s", Net: "unix"},
	} {
		if got := reach(addr); got != want {
			t.Errorf("%v: %s, want %s", addr, got, want)
		}
	}
}
