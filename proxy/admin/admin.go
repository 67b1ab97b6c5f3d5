// Package admin is what the operator sees: the [Status] that /status answers,
// the metrics of a [Snapshot], and the dashboard, one HTML page that needs no
// script, a style sheet, and a script that refreshes the page and presses its
// buttons without a reload. Nothing of it comes from elsewhere. Package proxy
// gathers what is shown, and asks for the admin token.
package admin

import (
	_ "embed" // for the files below
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// Style is the style sheet, Script the script.
var (
	//go:embed style.css
	Style string
	//go:embed script.js
	Script string

	//go:embed page.html
	page string
)

var parsed = template.Must(template.New("page").Funcs(template.FuncMap{
	"clip": clip, "address": address, "size": size, "span": span, "since": func(now, then time.Time) string { return span(now.Sub(then)) },
	"words": func(label string) string { return strings.ReplaceAll(label, "_", " ") },
}).Parse(page))

// Page is what the page shows, beside the Status.
type Page struct {
	Status
	Now    time.Time
	Up     time.Duration // of the browser's connection
	Notice string        // what came of the button that was pressed
}

// view is a Page with what is found in its Status.
type view struct {
	Page
	Life                     life
	Connected, InGrace, Tabs int
	Queue                    int // bytes for clients
}

// Write writes the page.
func Write(w io.Writer, page Page) error {
	v := view{Page: page, Life: lifeOf(page.Browser.Life)}
	for _, c := range page.Clients {
		v.Tabs += len(c.Tabs)
		v.Queue += c.QueuedBytes
		switch c.State {
		case "connected":
			v.Connected++
		case "grace":
			v.InGrace++
		}
	}
	return parsed.Execute(w, v)
}

// clip shortens a text to n characters, the last of them an ellipsis.
func clip(n int, text string) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// address is a URL without what may be secret: its query, its fragment, and
// the name and password before its host. Of data: and the like the scheme alone stays.
func address(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		scheme, _, _ := strings.Cut(text, ":")
		return scheme + ":…"
	case u.Scheme == "about" || u.Opaque == "":
	default:
		return u.Scheme + ":…"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// size writes bytes as people read them.
func size(bytes int) string {
	n, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for n >= 1024 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	if units[0] == "B" || n >= 100 {
		return fmt.Sprintf("%.0f %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", n, units[0])
}

// span writes a duration as people read it: its two largest units.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d m", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}
