package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// url is where a path of the proxy is.
func (a *adminAPI) url(path string) string {
	switch {
	case strings.HasPrefix(a.at.Addr, "unix:"):
		return "http://localhost" + path
	case a.at.Cert != "":
		return "https://" + a.at.Addr + path
	}
	return "http://" + a.at.Addr + path
}

// transport reaches the proxy, whatever proxies the environment names.
func (a *adminAPI) transport() (*http.Transport, error) {
	t := &http.Transport{DisableKeepAlives: true, DialContext: a.dial}
	if a.at.Cert == "" {
		return t, nil
	}
	leaf, err := readLeaf(a.at.Cert)
	if err != nil {
		return nil, fmt.Errorf("certificate of the proxy of %s: %w", a.slug, err)
	}
	t.TLSClientConfig = &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Its name and issuer prove nothing here: it is the very certificate
		// that this proxy was given, or none.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if !bytes.Equal(state.PeerCertificates[0].Raw, leaf) {
				return fmt.Errorf("it shows another certificate than the one in %s: see the log of the proxy", a.at.Cert)
			}
			return nil
		},
	}
	return t, nil
}

func (a *adminAPI) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: answerLimit}
	if path, ok := strings.CutPrefix(a.at.Addr, "unix:"); ok {
		return dialer.DialContext(ctx, "unix", path)
	}
	return dialer.DialContext(ctx, "tcp", a.at.Addr)
}

// readLeaf reads the first certificate of a PEM file.
func readLeaf(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return block.Bytes, nil
		}
	}
	return nil, fmt.Errorf("%s has no certificate", path)
}
