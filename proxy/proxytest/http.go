package proxytest

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

func (b *Browser) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !hostAllowed(r.Host) {
		http.Error(w, "Host header is specified and is not an IP address or localhost.", http.StatusInternalServerError)
		return
	}
	b.mu.Lock()
	uuid := b.uuid
	refuse := r.Header.Get("Upgrade") != "" && b.refusals > 0
	if refuse {
		b.refusals--
	}
	b.mu.Unlock()
	switch path := r.URL.Path; {
	case refuse:
		http.Error(w, "refused", http.StatusServiceUnavailable)
	case path == "/devtools/browser/"+uuid:
		if origin, ok := r.Header["Origin"]; ok && origin[0] != b.HTTP() {
			http.Error(w, "Rejected an incoming WebSocket connection from the "+origin[0]+" origin.", http.StatusForbidden)
			return
		}
		b.serveWS(w, r)
	case strings.TrimSuffix(path, "/") == "/json/version":
		writeJSON(w, fmt.Sprintf("{\n   \"Browser\": %q,\n   \"File-Path-Style\": \"posix\",\n   \"Protocol-Version\": \"1.3\",\n   \"User-Agent\": %q,\n   \"V8-Version\": \"15.6.75.63\",\n   \"WebKit-Version\": \"537.36 (%s)\",\n   \"webSocketDebuggerUrl\": \"ws://%s/devtools/browser/%s\"\n}\n",
			product, userAgent, revision, r.Host, uuid))
	case path == "/json", strings.TrimSuffix(path, "/") == "/json/list":
		writeJSON(w, b.list(r.Host))
	case path == "/json/protocol":
		writeJSON(w, `{"version":{"major":"1","minor":"3"},"domains":[{"domain":"Browser"},{"domain":"Page"},{"domain":"Runtime"},{"domain":"Target"}]}`)
	default:
		http.NotFound(w, r)
	}
}

// hostAllowed is Chrome's rule against names that a stranger's DNS points here.
func hostAllowed(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil
}

func (b *Browser) list(host string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var entries []string
	for _, t := range b.sorted() {
		if t.kind == "browser" || t.kind == "tab" {
			continue
		}
		parent := ""
		if t.parent != nil {
			parent = "\n   \"parentId\": " + quote(t.parent.id) + ","
		}
		entries = append(entries, "{\n   \"description\": \"\",\n   \"id\": "+quote(t.id)+","+parent+"\n   \"title\": "+quote(t.title)+
			",\n   \"type\": "+quote(t.kind)+",\n   \"url\": "+quote(t.url)+",\n   \"webSocketDebuggerUrl\": "+
			quote("ws://"+host+"/devtools/page/"+t.id)+"\n}")
	}
	return "[ " + strings.Join(entries, ", ") + " ]\n"
}

func writeJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	fmt.Fprint(w, body)
}
