package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/proxy/admin"
)

// topView is what top shows of a status.
type topView struct {
	at      time.Time
	Store   string `json:"store"`
	Browser struct {
		admin.BrowserStatus
		Life json.RawMessage `json:"life"`
	} `json:"browser"`
	Clients   []admin.ClientStatus `json:"clients"`
	Downloads admin.DownloadStatus `json:"downloads"`
}

// write writes a line for the browser, one for what is under way, one for the
// breaker when it has something to say, and a table of the clients. last is
// the picture before, nil at first.
func (v *topView) write(w io.Writer, last *topView) {
	browser := v.Browser.State
	if more := v.Browser.Product + v.Browser.Error; more != "" {
		browser += ", " + more
	}
	fmt.Fprintf(w, "%s  %s  browser %s\n", v.at.Format(time.TimeOnly), plain(v.Store), plain(browser))
	tabs, pending, queued := 0, 0, 0
	for _, c := range v.Clients {
		tabs, pending, queued = tabs+len(c.Tabs), pending+c.Pending, queued+c.QueuedBytes
	}
	d := v.Downloads
	fmt.Fprintf(w, "clients %d  tabs %d  pending %d  queued %s  downloads %d under way, %d arrived, %d failed",
		len(v.Clients), tabs, pending, bytesText(queued), d.Active, d.Arrived, d.Failed)
	if d.Error != "" {
		fmt.Fprintf(w, " (the last: %s)", plain(d.Error))
	}
	fmt.Fprintf(w, "\n%s\n", v.breaker())
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLIENT\tSTATE\tTABS\tPENDING\tQUEUED\tMSG/S\tLAST METHOD\tTAB USED LAST")
	for _, c := range v.Clients {
		state := c.State
		if !c.Until.IsZero() {
			state += " " + c.Until.Sub(v.at).Round(time.Second).String()
		}
		tab := "-"
		if len(c.Tabs) > 0 {
			t := c.Tabs[0]
			tab = strings.TrimSpace(plain(strings.Join([]string{t.State, t.Error, t.Title, t.URL}, " ")))
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", plain(clientName(c.ID)), plain(state), len(c.Tabs), c.Pending,
			bytesText(c.QueuedBytes), v.rate(c, last), orDash(plain(c.Last)), tab)
	}
	_ = table.Flush() // w is a buffer
}

// breaker says how many relaunches there were, and when the next is allowed.
func (v *topView) breaker() string {
	var life lifecycle.View
	if len(v.Browser.Life) == 0 || json.Unmarshal(v.Browser.Life, &life) != nil {
		return "breaker: none"
	}
	text := fmt.Sprintf("breaker: %d relaunches", life.Relaunches)
	if !life.NextTrial.IsZero() {
		text += ", open; next trial in " + max(0, life.NextTrial.Sub(v.at)).Round(time.Second).String()
	}
	if n := len(life.Holds); n > 0 {
		text += fmt.Sprintf("  holds: %d", n)
	}
	return text
}

// rate is the messages a second, both ways, since the last picture.
func (v *topView) rate(c admin.ClientStatus, last *topView) string {
	if last == nil {
		return "-"
	}
	for _, before := range last.Clients {
		if since := v.at.Sub(last.at).Seconds(); before.ID == c.ID && since > 0 {
			// A connection that ended took its count with it.
			n := max(0, c.InMessages+c.OutMessages-before.InMessages-before.OutMessages)
			return fmt.Sprintf("%.1f", float64(n)/since)
		}
	}
	return "-"
}

// bytesText writes bytes for people.
func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
