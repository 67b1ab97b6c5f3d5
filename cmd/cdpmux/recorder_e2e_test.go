package main_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// recorder stands between a client and what it dials: it passes on every byte
// and keeps those on their way down.
type recorder struct {
	addr string // host:port it listens on
	down output
}

// record starts a recorder in front of host:port; it ends with the test.
func record(t *testing.T, upstream string) *recorder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{addr: listener.Addr().String()}
	ended := make(chan struct{})
	var relays sync.WaitGroup
	t.Cleanup(func() {
		close(ended)
		_ = listener.Close()
		relays.Wait()
	})
	relays.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			relays.Go(func() { r.relay(client, upstream, ended) })
		}
	})
	return r
}

// relay connects both sides until one of them ends, or the test does.
func (r *recorder) relay(client net.Conn, upstream string, ended <-chan struct{}) {
	defer client.Close()
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer server.Close()
	over := make(chan struct{}, 2)
	var copies sync.WaitGroup
	copies.Go(func() {
		_, _ = io.Copy(server, client)
		over <- struct{}{}
	})
	copies.Go(func() {
		_, _ = io.Copy(io.MultiWriter(&r.down, client), server)
		over <- struct{}{}
	})
	select {
	case <-over:
	case <-ended:
	}
	_ = client.Close()
	_ = server.Close()
	copies.Wait()
}

// received are all the bytes that went to the client, of all its connections.
func (r *recorder) received() string { return r.down.String() }
