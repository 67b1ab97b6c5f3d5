package proxy

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"cdpmux/proxy/access"
	"cdpmux/routing"
)

// targetJSON is the entry of a target in /json/list. base is a WebSocket
// address of ours with the client's path.
func targetJSON(t routing.TargetView, v routing.Version, base string) string {
	socket := base + "/devtools/page/" + t.ID
	// The page of another site that shows this address is not to learn the
	// capability in it.
	scheme, rest, _ := strings.Cut(access.WithoutCapability(socket), "://")
	entry := map[string]string{
		"description":          "",
		"devtoolsFrontendUrl":  "https://chrome-devtools-frontend.appspot.com/serve_rev/" + v.Revision + "/inspector.html?" + scheme + "=" + rest,
		"id":                   t.ID,
		"title":                htmlEscaper.Replace(t.Title), // Chrome does, in this list only
		"type":                 t.Type,
		"url":                  t.URL,
		"webSocketDebuggerUrl": socket,
	}
	if t.ParentID != "" {
		entry["parentId"] = t.ParentID
	}
	return jsonObject(entry)
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// jsonObject writes an object as Chrome's pretty printer does.
func jsonObject(members map[string]string) string {
	var b strings.Builder
	b.WriteString("{")
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n   " + jsonString(key) + ": " + jsonString(members[key]))
	}
	b.WriteString("\n}")
	return b.String()
}

// jsonString is a JSON string with Chrome's escapes: of "<", ">" and "&" it
// escapes the first alone.
func jsonString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string and a Builder
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "<", `\u003C`)
}

// sendJSON answers as Chrome's /json does, plain texts included.
func sendJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'")
	send(w, status, jsonType, body)
}
