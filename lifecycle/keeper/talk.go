package keeper

import (
	"encoding/json"
	"net"
	"os"
	"time"
)

// listenUnix opens a socket for our own user. An old one is a dead keeper's.
func listenUnix(path string) (net.Listener, error) {
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// accept lets further proxies in; only our own user can reach the socket.
func (k *keeper) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		k.events <- event{conn: conn, fresh: true}
		go k.read(conn, json.NewDecoder(conn))
	}
}

// read passes on what a proxy orders, until it is gone.
func (k *keeper) read(conn net.Conn, in *json.Decoder) {
	for {
		var order Order
		err := in.Decode(&order)
		k.events <- event{conn: conn, order: order, err: err}
		if err != nil {
			return
		}
	}
}

// take makes conn the proxy: the newest one is right, since a store has one
// proxy only.
func (k *keeper) take(conn net.Conn) {
	k.drop()
	k.proxy = conn
	k.tell(k.report)
}

func (k *keeper) drop() {
	if k.proxy != nil {
		k.proxy.Close()
		k.proxy = nil
	}
}

// tell sends the proxy a report. One that does not read is cut off: it will be
// told everything when it comes again.
func (k *keeper) tell(r Report) {
	if k.proxy == nil {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and times only
	}
	_ = k.proxy.SetWriteDeadline(time.Now().Add(5 * time.Second))
	if _, err := k.proxy.Write(append(line, '\n')); err != nil {
		k.proxy.Close() // its reader notices, and the grace begins
	}
}
