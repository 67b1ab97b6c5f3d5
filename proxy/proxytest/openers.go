package proxytest

import (
	"fmt"
	"net/http"
)

// openers serves what opens tabs and starts workers:
//
//	/opener        #open, #noopener, #blank and #form open /plain, each its own way, and
//	               so does #link, with Ctrl or Shift or the middle button; an iframe
//	               holds the same of the other site
//	/prerender     has /plain prerendered; #link goes there
//	/service.js    a service worker, for any scope
//	/shared.js     a shared worker that answers each of its clients with "pong"
func (s *Site) openers(mux *http.ServeMux) {
	const tools = `
<a id="link" href="/plain" style="position:fixed;left:20px;top:20px">link</a>
<button id="open" onclick="window.open('/plain')">window.open</button>
<button id="noopener" onclick="window.open('/plain', '', 'noopener')">noopener</button>
<a id="blank" href="/plain" target="_blank">_blank</a>
<form action="/plain" target="_blank"><button id="form">form</button></form>`
	mux.HandleFunc("/opener", func(w http.ResponseWriter, r *http.Request) {
		body := tools
		if r.FormValue("in") == "" {
			body += `<iframe src="` + s.otherThan(r) + `/opener?in=frame" style="position:fixed;left:100px;top:150px;border:0"></iframe>`
		}
		writePage(w, "opener", body)
	})
	mux.HandleFunc("/prerender", func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, "prerender", `<a id="link" href="/plain">link</a>
<script type="speculationrules">{"prerender": [{"urls": ["/plain"], "eagerness": "immediate"}]}</script>`)
	})
	script := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			w.Header().Set("Service-Worker-Allowed", "/")
			fmt.Fprint(w, text)
		})
	}
	script("/service.js", `oninstall = () => skipWaiting()`)
	script("/shared.js", `onconnect = event => event.ports[0].postMessage('pong')`)
}
