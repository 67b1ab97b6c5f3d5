package proxytest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// files adds what can be downloaded:
//
//	/file?n=NAME&mark=M&size=N  an attachment of that name: [FileText] of M and N
//	/hold?n=NAME                an attachment whose first KiB comes, and the rest never
//	/download                   a page with a link #file, a form #form that posts for a file, a same-site iframe #near
//	/downloads-afar             a page with such a page of the other site in an iframe
func (s *Site) files(mux *http.ServeMux) {
	attach := func(w http.ResponseWriter, r *http.Request, size int) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(size))
		w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(r.FormValue("n")))
	}
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.FormValue("size"))
		text := FileText(r.FormValue("mark"), size)
		attach(w, r, len(text))
		_, _ = w.Write(text)
	})
	mux.HandleFunc("/hold", func(w http.ResponseWriter, r *http.Request) {
		attach(w, r, 1<<20)
		_, _ = w.Write(make([]byte, 1<<10))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	const body = `<a id="file" href="/file?n=link.txt&mark=link">link</a>
<form id="form" method="post" action="/file?n=form.txt&mark=form"></form>`
	mux.HandleFunc("/download", func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, "download", body+`<iframe id="near" src="/plain-download"></iframe>`)
	})
	mux.HandleFunc("/plain-download", func(w http.ResponseWriter, _ *http.Request) { writePage(w, "plain-download", body) })
	mux.HandleFunc("/downloads-afar", func(w http.ResponseWriter, r *http.Request) {
		writePage(w, "downloads-afar", fmt.Sprintf(`<iframe src="%s/plain-download"></iframe>`, s.otherThan(r)))
	})
}

// FileText is the content of a file that the [Site] offers: mark, repeated to
// size bytes; mark alone with size 0.
func FileText(mark string, size int) []byte {
	if size == 0 {
		return []byte(mark)
	}
	return bytes.Repeat([]byte(mark), size/len(mark)+1)[:size]
}
