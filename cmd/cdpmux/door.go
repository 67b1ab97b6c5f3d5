package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
	"cdpmux/proxy"
	"cdpmux/proxy/access"
)

// doorOptions are the flags that say how clients come in, and what they have
// to show.
type doorOptions struct {
	auth            choice
	tlsCert, tlsKey string
	trusted         []string
	public          string
}

func (d *doorOptions) bind(f *pflag.FlagSet) {
	d.auth = oneOf("auto", "token", "none")
	f.Var(&d.auth, "auth", "whether a client needs a token: auto asks for one where other machines can come in")
	f.StringVar(&d.tlsCert, "tls-cert", "", "serve TLS with the certificate (chain) in this PEM `FILE`, read again when it changes")
	f.StringVar(&d.tlsKey, "tls-key", "", "PEM `FILE` of its key")
	f.StringSliceVar(&d.trusted, "trusted-proxy", nil, "network `CIDR` of reverse proxies whose X-Forwarded-* headers are believed; may be repeated")
	f.StringVar(&d.public, "public-url", "", "`URL` by which clients reach this proxy through another one, as https://cdp.example.com/shop")
}

// check refuses flags that cannot go together. listen may be empty.
func (d *doorOptions) check(listen string) error {
	if (d.tlsCert == "") != (d.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if _, err := d.proxies(); err != nil {
		return err
	}
	if _, err := d.publicURL(); err != nil {
		return err
	}
	return d.fits(listen)
}

// fits refuses what must not be had at an address, which the store may only
// have remembered.
func (d *doorOptions) fits(listen string) error {
	switch {
	case d.tlsCert != "" && strings.HasPrefix(listen, "unix:"):
		return fmt.Errorf("--tls-cert with --listen %s: nobody is on the way to a Unix socket; leave --tls-cert away", listen)
	case d.auth.value == "none" && !inside(listen):
		return fmt.Errorf("--auth none with --listen %s: any machine could use the logins; leave --auth away, or listen on 127.0.0.1", listen)
	}
	return nil
}

// inside reports whether only this machine can reach an address: a host and
// port, a Unix socket, or none.
func inside(listen string) bool {
	if listen == "" || strings.HasPrefix(listen, "unix:") {
		return true
	}
	host, _, _ := net.SplitHostPort(listen)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// required says whether clients at an address need a credential. Behind a
// reverse proxy all requests seem to come from this machine.
func (d *doorOptions) required(listen string) bool {
	switch d.auth.value {
	case "token":
		return true
	case "none":
		return false
	}
	public, _ := d.publicURL() // checked before
	return !inside(listen) || len(d.trusted) > 0 || public != nil && !inside(net.JoinHostPort(public.Hostname(), ""))
}

func (d *doorOptions) proxies() (access.Proxies, error) {
	var list access.Proxies
	for _, text := range d.trusted {
		network, err := netip.ParsePrefix(text)
		if addr, e := netip.ParseAddr(text); e == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxy %s: want a network such as 10.0.0.0/8, or an address", text)
		}
		list = append(list, network)
	}
	return list, nil
}

// publicURL is nil when there is none.
func (d *doorOptions) publicURL() (*url.URL, error) {
	if d.public == "" {
		return nil, nil
	}
	u, err := url.Parse(d.public)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--public-url: want http://HOST or https://HOST, with a port and a path if need be, and nothing else")
	}
	return u, nil
}

// publicPath is what stands before our paths in --public-url: "/shop", or nothing.
func (d *doorOptions) publicPath() string {
	u, err := d.publicURL()
	if u == nil || err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// configure puts into c what the flags say for an address.
func (d *doorOptions) configure(c *proxy.Config, listen string, log zerolog.Logger) (err error) {
	c.Auth.Required = d.required(listen)
	c.Auth.Forwarded = d.auth.value == "auto" && d.public == ""
	if c.TrustedProxies, err = d.proxies(); err != nil {
		return err
	}
	if c.PublicURL, err = d.publicURL(); err != nil {
		return err
	}
	if d.tlsCert != "" {
		if c.TLS, err = access.TLSConfig(d.tlsCert, d.tlsKey, log); err != nil {
			return err
		}
	}
	switch {
	case inside(listen) && c.PublicURL != nil && d.auth.value == "none":
		log.Warn().Msg("--auth none behind a public address: whoever gets past that proxy can use the logins")
	case !inside(listen) && d.tlsCert == "" && (c.PublicURL == nil || c.PublicURL.Scheme == "http"):
		log.Warn().Msg("other machines come in without TLS: tokens and pages can be read on the way; add --tls-cert and --tls-key")
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && c.PublicURL == nil {
		if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
			log.Info().Msg("cdpmux url prints an address for this machine only: say with --public-url how others reach it")
		}
	}
	return nil
}

// announcement is what others are told of a proxy that listens.
func (d *doorOptions) announcement(l net.Listener) (lifecycle.Holder, error) {
	h := lifecycle.Holder{Addr: reach(l.Addr()), Auth: d.required(listenAddr(l.Addr())), Cert: d.tlsCert}
	switch {
	case d.public != "":
		h.URL = strings.TrimSuffix(d.public, "/")
	case d.tlsCert != "":
		h.URL = "https://" + h.Addr
	case strings.HasPrefix(h.Addr, "unix:"):
		h.URL = h.Addr
	default:
		h.URL = "http://" + h.Addr
	}
	var err error
	if h.Cert != "" {
		h.Cert, err = filepath.Abs(h.Cert)
	}
	return h, err
}
