package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// patientConn is the net.Conn under TLS. A write of crypto/tls that was cut
// short by a deadline spoils its connection; here it goes on, piece by piece,
// while stalled allows it, as [corkConn.send] does without TLS.
type patientConn struct {
	net.Conn

	// static after watch
	tick    time.Duration
	stalled func(idle time.Duration) error // nil before
}

// under is the patientConn of a connection with TLS, nil without.
func under(conn net.Conn) *patientConn {
	if t, ok := conn.(*tls.Conn); ok {
		p, _ := t.NetConn().(*patientConn)
		return p
	}
	return nil
}

// watch has stalled asked while the peer takes nothing. No other goroutine uses
// the connection yet.
func (c *patientConn) watch(tick time.Duration, stalled func(idle time.Duration) error) {
	c.tick, c.stalled = tick, stalled
}

func (c *patientConn) Write(p []byte) (written int, err error) {
	if c.stalled == nil {
		return c.Conn.Write(p)
	}
	since := time.Now() // the peer took something
	for {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.tick))
		n, err := c.Conn.Write(p[written:])
		written += n
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		now := time.Now()
		if n > 0 {
			since = now
		}
		if err := c.stalled(now.Sub(since)); err != nil {
			return written, err
		}
	}
}

// ListenTLS serves TLS over what l accepts, so that a link above it can have its
// writes looked at while they wait.
func ListenTLS(l net.Listener, config *tls.Config) net.Listener {
	return tls.NewListener(patientListener{l}, config)
}

// patientListener puts a patientConn under each connection.
type patientListener struct{ net.Listener }

func (l patientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &patientConn{Conn: conn}, nil
}
