package access

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/proxy/proxytest"
)

func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := proxytest.KeyPair(t, certFile, keyFile)
	var log strings.Builder
	now := time.Unix(1_000_000, 0)
	c := &certificate{certFile: certFile, keyFile: keyFile, log: zerolog.New(&log), now: func() time.Time { return now }}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	shows := func(want *x509.Certificate) {
		t.Helper()
		pair, err := c.get(nil)
		if err != nil || !bytes.Equal(pair.Certificate[0], want.Raw) {
			t.Errorf("it shows another certificate; %v", err)
		}
	}
	// The clock of files is coarse.
	change := func(path string, stamp time.Time) {
		t.Helper()
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	shows(first)
	otherKey := filepath.Join(dir, "other.pem")
	second := proxytest.KeyPair(t, certFile, otherKey)
	change(certFile, now)
	shows(first) // not looked at twice in a second
	now = now.Add(lookEvery)
	shows(first) // the key does not fit yet
	if n := strings.Count(log.String(), "the old one stays"); n != 1 {
		t.Errorf("log: %s", &log)
	}
	now = now.Add(lookEvery)
	shows(first)
	if n := strings.Count(log.String(), "the old one stays"); n != 1 {
		t.Errorf("told again and again: %s", &log)
	}
	if err := os.Rename(otherKey, keyFile); err != nil {
		t.Fatal(err)
	}
	change(keyFile, now)
	now = now.Add(lookEvery)
	shows(second)
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	shows(second)
	if _, err := TLSConfig(certFile, keyFile, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("a start without a certificate: %v", err)
	}
	third := proxytest.KeyPair(t, certFile, keyFile)
	if err := os.Chmod(keyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	shows(third)
	log.Reset()
	if _, err := TLSConfig(certFile, keyFile, zerolog.New(&log)); err != nil || !strings.Contains(log.String(), "chmod 600") {
		t.Errorf("a key that others can read: %v, log %q", err, &log)
	}
}
