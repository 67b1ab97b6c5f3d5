package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/lease"
)

func sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Sessions: client names with a token of their own that closes them",
		Example: `  cdpmux session create --store shop --client agent
  cdpmux session list --store shop`,
		Long: `Sessions: client names with a token of their own that closes them.

A session keeps a place for its client and lets nobody else use that name. Its
id and its close token are made before the first request; who repeats a request
with the same pair gets the same session.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(sessionCreateCommand(), sessionCloseCommand(), sessionListCommand())
	return cmd
}

// closeToken is where a close token comes from.
type closeToken struct{ file string }

func (c *closeToken) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.file, "close-token-file", "", "`FILE` with the close token (default: the variable CDPMUX_CLOSE_TOKEN)")
}

// read returns "" when none was given.
func (c *closeToken) read() (string, error) {
	if c.file == "" {
		return os.Getenv("CDPMUX_CLOSE_TOKEN"), nil
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", fmt.Errorf("close token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("close token: %s is empty", c.file)
	}
	return token, nil
}

// randomText is a secret, or a name that nobody else has.
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// sessionCreate are the flags of session create.
type sessionCreate struct {
	storeFlags
	token        closeToken
	session      string // its id
	client       string
	tabCap       uint
	grace, wait  seconds
	capped, kept bool // tabCap and grace were given
}

func sessionCreateCommand() *cobra.Command {
	o := sessionCreate{wait: seconds(60 * time.Second)}
	cmd := &cobra.Command{
		Use: "create (--store NAME | --web) --client NAME", Args: cobra.NoArgs,
		Short: "Make a session, or find it again, and print it as JSON",
		Long: `Make a session, or find it again, and print it as JSON. ws_url is where its
client connects. An id and a close token that were not given are made, and the
token is printed with the session: it is not kept anywhere else.`,
		Example: `  cdpmux session create --store shop --client task-1a2b3c4d
  cdpmux session create --store shop --client task-1a2b3c4d --session "$ID" --close-token-file token`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !clientID.MatchString(o.client) {
				return fmt.Errorf("--client %q: 1 to 64 characters of A-Z a-z 0-9 _ - are allowed", o.client)
			}
			o.capped, o.kept = cmd.Flags().Changed("tab-cap"), cmd.Flags().Changed("grace")
			return nil
		},
	}
	o.operate(cmd, o.run)
	f := cmd.Flags()
	f.StringVar(&o.client, "client", "", "`NAME` of its client, the client id")
	f.StringVar(&o.session, "session", "", "`ID` of the session, 16 to 128 of A-Z a-z 0-9 _ - (default: a random one)")
	f.UintVar(&o.tabCap, "tab-cap", 0, "tabs that the client may have, 0 is no limit (default: as serve has it)")
	f.Var(&o.grace, "grace", "how long its tabs outlive its connection (default: as serve has it)")
	f.Lookup("grace").DefValue = "" // 0s would be shown as the default besides
	f.Var(&o.wait, "wait", "how long to wait for the browser")
	o.token.bind(cmd)
	_ = cmd.MarkFlagRequired("client")
	return cmd
}

func (o *sessionCreate) run(home *lifecycle.Home, slug string, stdout io.Writer) error {
	served, err := openAdmin(home, slug)
	if err != nil {
		return err
	}
	token, err := o.token.read()
	if err != nil {
		return err
	}
	made := token == ""
	if made {
		token = randomText()
	}
	if o.session == "" {
		o.session = randomText()
	}
	client := map[string]any{"name": o.client}
	if o.capped {
		client["tab_cap"] = o.tabCap
	}
	if o.kept {
		client["grace_s"] = int(time.Duration(o.grace).Seconds())
	}
	var answer map[string]json.RawMessage
	err = askSession(served, "", map[string]any{"session_id": o.session, "close_token": token, "client": client}, o.wait, &answer)
	if err != nil {
		return err
	}
	if made {
		answer["close_token"], _ = json.Marshal(token)
	}
	if err := printJSON(stdout, answer); err != nil {
		return err
	}
	if string(answer["state"]) != `"ready"` {
		return &lifecycle.Failure{Kind: lifecycle.LaunchTimeout, Text: "the session is not ready yet", Hint: "repeat it with the same --session and close token"}
	}
	return nil
}

// askSession sends one of the calls of sessions, and lets it take its time.
func askSession(served *adminAPI, path string, in map[string]any, wait seconds, out any) error {
	in["wait_s"] = int(time.Duration(wait).Seconds())
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(wait)+answerLimit)
	defer cancel()
	return served.call(ctx, http.MethodPost, lease.Path+path, in, out)
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func sessionCloseCommand() *cobra.Command {
	var o storeFlags
	var token closeToken
	var id string
	reason, wait := oneOf(lease.Reasons...), seconds(30*time.Second)
	cmd := &cobra.Command{
		Use: "close (--store NAME | --web) --session ID", Args: cobra.NoArgs,
		Short:   "Close a session, its client and its tabs",
		Example: `  cdpmux session close --store shop --session 0123456789abcdef`,
		Long: `Close a session, its client and its tabs, and print what was seen of that as
JSON. Without its close token it is closed as the operator, which is logged.
What could not be closed keeps its place: close it again.`,
	}
	o.operate(cmd, func(home *lifecycle.Home, slug string, stdout io.Writer) error {
		served, err := openAdmin(home, slug)
		if err != nil {
			return err
		}
		in := map[string]any{"reason": reason.value}
		switch text, err := token.read(); {
		case err != nil:
			return err
		case text != "":
			in["close_token"] = text
		}
		var answer struct {
			Closed  bool            `json:"closed"`
			ID      string          `json:"session_id"`
			Status  string          `json:"status"`
			Receipt json.RawMessage `json:"receipt,omitempty"`
		}
		if err := askSession(served, "/"+url.PathEscape(id)+"/close", in, wait, &answer); err != nil {
			return err
		}
		if err := printJSON(stdout, answer); err != nil {
			return err
		}
		if !answer.Closed {
			return &lifecycle.Failure{Kind: lifecycle.CleanupPending, Text: "the session is still closing", Hint: "repeat it"}
		}
		return nil
	})
	f := cmd.Flags()
	f.StringVar(&id, "session", "", "`ID` of the session")
	f.Var(&reason, "reason", "why, for the record")
	f.Var(&wait, "wait", "how long it may take")
	token.bind(cmd)
	_ = cmd.MarkFlagRequired("session")
	return cmd
}

func sessionListCommand() *cobra.Command {
	var o storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list (--store NAME | --web)", Args: cobra.NoArgs,
		Short:   "List the sessions of a store that are not closed",
		Example: `  cdpmux session list --store shop`,
	}
	o.operate(cmd, func(home *lifecycle.Home, slug string, stdout io.Writer) error {
		served, err := openAdmin(home, slug)
		if err != nil {
			return err
		}
		var answer struct {
			Sessions []lease.Listed `json:"sessions"`
		}
		if err := served.brief(context.Background(), http.MethodGet, lease.Path, nil, &answer); err != nil {
			return err
		}
		if asJSON {
			return printJSON(stdout, answer.Sessions)
		}
		return printSessions(stdout, answer.Sessions)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}

func printSessions(w io.Writer, list []lease.Listed) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list {
		more := fmt.Sprintf("%d connected, %d tabs", s.Connected, s.Tabs)
		if s.State == lease.ReleaseFailed {
			more += fmt.Sprintf(", %d processes left after %d attempts; cdpmux session close tries again", s.Survivors, s.Attempts)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.ID, s.Client, s.State, more)
	}
	return table.Flush()
}
