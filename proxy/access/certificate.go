package access

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// certificate is a key pair in two files, which is read again when they change.
type certificate struct {
	certFile, keyFile string
	log               zerolog.Logger
	now               func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate // the last one that could be read
	stamps [2]stamp         // of the files that were read last, or could not be
	looked time.Time
}

// stamp tells one state of a file from another.
type stamp struct {
	time time.Time
	size int64
}

// lookEvery bounds how often the files are looked at.
const lookEvery = time.Second

// TLSConfig serves HTTP/1.1 over TLS with a certificate and its key from two
// PEM files. They may be replaced at any time: the next handshake has the new
// ones, at most a second later. Until both fit, the old ones stay.
func TLSConfig(certFile, keyFile string, log zerolog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	if err := c.read(); err != nil {
		return nil, err
	}
	if fi, err := os.Stat(keyFile); err == nil && fi.Mode().Perm()&0o077 != 0 {
		log.Warn().Str("path", keyFile).Msg("others can read the TLS key; next: chmod 600")
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"}, // WebSockets need it
		GetCertificate: c.get,
	}, nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if c.look() != c.stamps {
			if err := c.read(); err != nil {
				c.log.Error().Err(err).Msg("the new TLS certificate is of no use; the old one stays until both files are mended")
			} else {
				c.log.Info().Str("path", c.certFile).Msg("TLS certificate read again")
			}
		}
	}
	return c.pair, nil
}

// look tells what the files are like; the zero stamp is of one that is not there.
func (c *certificate) look() (stamps [2]stamp) {
	for i, path := range []string{c.certFile, c.keyFile} {
		if fi, err := os.Stat(path); err == nil {
			stamps[i] = stamp{fi.ModTime(), fi.Size()}
		}
	}
	return stamps
}

// read takes the stamps first: what changes meanwhile is read again later.
func (c *certificate) read() error {
	c.stamps = c.look()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("TLS certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.pair = &pair
	return nil
}
