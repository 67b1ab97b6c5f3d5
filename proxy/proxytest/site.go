package proxytest

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Site is a small web site for tests, reachable under two names that a browser
// takes for two sites: a frame of the one in a page of the other gets a
// process and a target of its own.
//
//	/plain          a heading; window.early tells whether an init script had set window.init before
//	/form           #count counts its clicks, #name takes text, #ask writes what confirm says into #answer
//	/title?t=X      a page titled X
//	/iframe         holds /plain of the other site in an iframe
//	/worker         runs a dedicated worker and sets window.ready to true when it answered
//	/popup          #open, #noopener and #blank open /plain in a new tab, each its own way
//	/cookie?n=&v=   sets a cookie that lasts a day (when n is given); shows document.cookie
//	/slow?ms=N      answers after N milliseconds
//
// and what [Site.openers] and [Site.files] add.
type Site struct {
	URL   string // http://127.0.0.1:port
	Other string // http://localhost:port
}

// StartSite serves the site until the test ends.
func StartSite(tb testing.TB) *Site {
	tb.Helper()
	site := &Site{}
	mux := http.NewServeMux()
	page := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { writePage(w, path[1:], body) })
	}
	page("/plain", `<h1>plain</h1><script>window.early = window.init === true</script>`)
	page("/form", `
<button id="count" onclick="this.textContent++">0</button>
<input id="name">
<button id="ask" onclick="document.getElementById('answer').textContent = confirm('sure?')">confirm</button>
<output id="answer"></output>`)
	page("/popup", `
<button id="open" onclick="window.open('/plain')">window.open</button>
<button id="noopener" onclick="window.open('/plain', '', 'noopener')">noopener</button>
<a id="blank" href="/plain" target="_blank">_blank</a>`)
	page("/worker", `<script>
const worker = new Worker('/worker.js');
worker.onmessage = () => { window.ready = true };
worker.postMessage('ping');
</script>`)
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `onmessage = () => postMessage('pong')`)
	})
	mux.HandleFunc("/iframe", func(w http.ResponseWriter, r *http.Request) {
		writePage(w, "iframe", `<iframe src="`+site.otherThan(r)+`/plain"></iframe>`)
	})
	mux.HandleFunc("/title", func(w http.ResponseWriter, r *http.Request) {
		writePage(w, r.FormValue("t"), "")
	})
	mux.HandleFunc("/cookie", func(w http.ResponseWriter, r *http.Request) {
		if name := r.FormValue("n"); name != "" {
			http.SetCookie(w, &http.Cookie{Name: name, Value: r.FormValue("v"), Path: "/", MaxAge: 24 * 60 * 60})
		}
		writePage(w, "cookie", `<script>document.write(document.cookie)</script>`)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		ms, _ := strconv.Atoi(r.FormValue("ms"))
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
			writePage(w, "slow", "")
		case <-r.Context().Done():
		}
	})
	site.openers(mux)
	site.files(mux)
	server := httptest.NewServer(mux)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	site.URL = server.URL
	site.Other = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	return site
}

// otherThan is the site's name that the request did not use.
func (s *Site) otherThan(r *http.Request) string {
	if strings.HasPrefix(r.Host, "localhost") {
		return s.URL
	}
	return s.Other
}

func writePage(w http.ResponseWriter, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// The empty icon keeps the browser from asking for /favicon.ico.
	fmt.Fprintf(w, "<!doctype html><title>%s</title><link rel=icon href=data:,>%s\n", html.EscapeString(title), body)
}
