package main

import (
	"net/url"
	"strings"

	"cdpmux/lifecycle"
	"cdpmux/proxy"
)

// readyText says of a store that is served where it is and how to connect.
func readyText(slug string, h lifecycle.Holder) string {
	return "cdpmux " + slug + " ready " + h.URL + " connect " + connectForm(h) + "\n"
}

// connectForm is the address of a client with a placeholder for its id, and for
// the capability that it needs then.
func connectForm(h lifecycle.Holder) string {
	key := ""
	if h.Auth {
		key = "/t/<capability>"
	}
	return socketURL(h) + key + "/client-<task_id>"
}

// socketURL is what stands before the path in a WebSocket address. Of a Unix
// socket it is the form that the ws package of Node.js takes.
func socketURL(h lifecycle.Holder) string {
	if path, ok := strings.CutPrefix(h.URL, "unix:"); ok {
		return "ws+unix:" + path + ":"
	}
	u, err := url.Parse(h.URL)
	if err != nil {
		return h.URL // only what another version has announced
	}
	return proxy.SocketURL(u)
}
