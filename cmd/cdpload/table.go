package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// write prints the table in Markdown, ready for the README, and saves all the
// figures.
func (b *bench) write(out io.Writer) error {
	names := []string{"direct", "relay", "cdpmux"}
	for _, p := range b.peers {
		names = append(names, p.name)
	}
	version := "unknown"
	if text, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		version = strings.TrimSpace(string(text))
	}
	head := fmt.Sprintf("%s, %d cores, %s/%s, %s, commit %s; medians of %d rounds of %s",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), version, b.rounds, b.duration)
	fmt.Fprintf(out, "%s\n\n| | work | %s | | | mark |\n|---|---|%s---|---|---|\n", head, strings.Join(names, " | "), strings.Repeat("---:|", len(names)))
	for _, r := range b.rows {
		fmt.Fprintf(out, "| %s | %s |", r.Mark, r.Work)
		for _, name := range names {
			cell := ""
			if v := r.Columns[name]; len(v) > 0 {
				cell = thousands(median(v)) + " " + r.Unit
			}
			fmt.Fprintf(out, " %s |", cell)
		}
		fmt.Fprintf(out, " %s | %s | %s |\n", r.Figure, r.Verdict, r.Goal)
	}
	if b.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Run  string `json:"run"`
		Rows []*row `json:"rows"`
	}{head, b.rows}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.json, append(text, '\n'), 0o644)
}

// thousands is a number as people read it: 12 345, 12.3.
func thousands(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
