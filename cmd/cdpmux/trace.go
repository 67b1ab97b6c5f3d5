package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/proxy"
)

// traceOptions are the flags of trace.
type traceOptions struct {
	storeFlags
	client string
	json   bool
}

func traceCommand() *cobra.Command {
	var o traceOptions
	cmd := &cobra.Command{
		Use:   "trace (--store NAME | --web) --client ID",
		Short: "Follow what a client and the browser say to each other",
		Long: `Follow what a client and the browser say to each other: methods, sessions, how
long each answer took, codes of errors. Params, results, addresses and cookies
are not shown. It ends with Ctrl-C, or when the client has left for good; one
that is not there yet is waited for.`,
		Example: `  cdpmux trace --store shop --client 1a2b3c4d
  cdpmux trace --store shop --client 1a2b3c4d --json`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if !clientID.MatchString(o.client) {
				return fmt.Errorf("--client %q: 1 to 64 characters of A-Z a-z 0-9 _ - are allowed", o.client)
			}
			return nil
		},
	}
	o.operate(cmd, o.run)
	f := cmd.Flags()
	f.StringVar(&o.client, "client", "", "`ID` of the client")
	f.BoolVar(&o.json, "json", false, "print each line as the proxy gives it, a JSON object")
	return cmd
}

func (o *traceOptions) run(home *lifecycle.Home, slug string, stdout io.Writer) error {
	served, err := openAdmin(home, slug)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	answer, err := served.open(ctx, http.MethodGet, "/v1/clients/"+o.client+"/trace", nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	lines := bufio.NewScanner(answer)
	for lines.Scan() {
		var l proxy.TraceLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("trace of %s: %w", o.client, err)
		}
		text := lines.Text()
		if !o.json {
			text = traceText(&l)
		}
		if _, err := fmt.Fprintln(stdout, text); err != nil {
			return err
		}
		if l.Kind == proxy.TraceGone {
			return nil
		}
	}
	if ctx.Err() != nil { // it was asked to end
		return nil
	}
	return &unreachable{served.at.Addr, errors.Join(lines.Err(), errors.New("the proxy ended the trace"))}
}

// traceText is a line for people.
func traceText(l *proxy.TraceLine) string {
	var b strings.Builder
	conn := ""
	if l.Conn != 0 {
		conn = fmt.Sprintf("c%d", l.Conn)
	}
	fmt.Fprintf(&b, "%s  %-3s", l.Time.Local().Format("15:04:05.000"), conn)
	switch l.Kind {
	case proxy.TraceWaiting:
		b.WriteString(" -- the client is not there yet")
	case proxy.TraceConnected:
		b.WriteString(" -- connected")
	case proxy.TraceEnded:
		b.WriteString(" -- ended: " + l.Reason)
	case proxy.TraceGone:
		b.WriteString(" -- the client has left for good")
	case proxy.TraceLost:
		fmt.Fprintf(&b, " -- %d lines are missing here: they came faster than they were read", l.Lost)
	default:
		arrow, id := " <  ", ""
		if l.Kind == proxy.TraceCommand {
			arrow = " >  "
		}
		if l.ID != nil {
			id = fmt.Sprintf("#%d", *l.ID)
		}
		fmt.Fprintf(&b, "%s%-6s %-40s %-14s %-8s %d B", arrow, id, l.Method, orDash(l.Target), orDash(l.Session), l.Bytes)
		if l.LatencyMS != nil {
			fmt.Fprintf(&b, "  %.1f ms", *l.LatencyMS)
		}
		if l.Error != 0 {
			fmt.Fprintf(&b, "  error %d", l.Error)
		}
	}
	return plain(b.String())
}
