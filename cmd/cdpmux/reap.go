package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// reapOptions are the flags of reap.
type reapOptions struct {
	home, task, active string
	olderThan          seconds
	json               bool
}

func reapCommand() *cobra.Command {
	var o reapOptions
	cmd := &cobra.Command{
		Use:   "reap",
		Short: "End the browser-harness daemons that agents have left",
		Long: `End the browser-harness daemons that agents have left.

The proxy of each store is asked for its clients; a daemon goes when its client
is neither connected nor awaited, and its task not among --active-tasks. Young
daemons stay; so do those of a store that is not served, does not answer, or
has not been served for long. With a daemon goes its session's folder in tmp/
of the state directory, which has the tool's log and screenshots; so does that
of a daemon which ended by itself.

With --task, that task's daemons and workers go at once, in every store, and
its clients are closed with their tabs: call this when a task has ended.`,
		Example: `  cdpmux reap --active-tasks tasks.txt
  cdpmux reap --active-tasks '@runner list --active'
  cdpmux reap --task 1a2b3c4d-5e6f`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.task != "" && !taskID.MatchString(o.task) {
				return fmt.Errorf("--task %q is no task id: 1 to 60 characters of A-Z a-z 0-9 _ - are allowed", o.task)
			}
			if o.task != "" && o.active != "" {
				return errors.New("--task ends that task whatever is active: leave --active-tasks out")
			}
			if err := fromEnv(only(cmd, "home")); err != nil {
				return err
			}
			if err := o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	bindHome(cmd, &o.home)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.task, "task", "", "end the daemons of the task `ID`, and close its clients")
	f.StringVar(&o.active, "active-tasks", "", "`FILE` with the ids of active tasks, one a line; @CMD takes them from a command's output")
	f.Var(&o.olderThan, "older-than", "how long daemon and proxy must have run (default: a minute more than the store's --grace and --start-timeout)")
	f.Lookup("older-than").DefValue = "" // 0s would be shown as the default besides
	f.BoolVar(&o.json, "json", false, "print a JSON array")
	return cmd
}

// reapedStore is what a pass did in one store.
type reapedStore struct {
	Store string `json:"store"`
	lifecycle.Reaped
	Tabs  int    `json:"tabs,omitempty"`  // closed, with --task
	Error string `json:"error,omitempty"` // why its daemons were left alone
}

func (o *reapOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	tasks, err := activeTasks(ctx, o.active)
	if err != nil {
		return fmt.Errorf("active tasks: %w; no daemon was ended", err)
	}
	home, err := openHome(o.home)
	if err != nil {
		return err
	}
	stores, err := home.Stores()
	if err != nil {
		return err
	}
	list := []reapedStore{}
	var failed error
	for _, s := range stores {
		done := reapedStore{Store: s.Slug}
		if o.task != "" {
			err = done.endTask(ctx, home, s, o.task)
		} else {
			err = done.pass(ctx, home, s, time.Duration(o.olderThan), tasks)
		}
		if err != nil && !errors.As(err, new(notServed)) {
			failed = errors.Join(failed, fmt.Errorf("store %s: %w", s.Slug, err))
		}
		if err != nil {
			done.Error = err.Error()
		}
		list = append(list, done)
	}
	if o.json {
		return errors.Join(failed, json.NewEncoder(stdout).Encode(list))
	}
	for _, done := range list {
		done.print(stdout)
	}
	return failed
}

func (r *reapedStore) print(w io.Writer) {
	for _, name := range r.Ended {
		fmt.Fprintf(w, "%s: daemon ended\n", name)
	}
	for _, name := range r.Cleaned {
		fmt.Fprintf(w, "%s: files of a session that is gone removed\n", name)
	}
	if r.Tabs > 0 {
		fmt.Fprintf(w, "%s: %d tabs closed\n", r.Store, r.Tabs)
	}
}

// pass judges a store's daemons by what its proxy says of its clients.
func (r *reapedStore) pass(ctx context.Context, home *lifecycle.Home, store *lifecycle.Store, minAge time.Duration, tasks []string) error {
	served, err := openAdmin(home, store.Slug)
	if err != nil {
		return err
	}
	if minAge == 0 {
		o, err := parseServe(store.Serve)
		if err != nil {
			return fmt.Errorf("remembered flags: %w", err)
		}
		minAge = o.reapMinAge()
	}
	clients, err := served.clients(ctx)
	if err != nil {
		return err
	}
	reaper, err := reaperOf(home, store, minAge, proc.Identify(served.at.PID), zerolog.Nop())
	if err != nil {
		return err
	}
	r.Reaped, err = reaper.Pass(ctx, lifecycle.InUse{Clients: clients, Tasks: tasks})
	return err
}

// endTask ends the daemons of a task and closes its clients: in this order, as
// a daemon would connect again.
func (r *reapedStore) endTask(ctx context.Context, home *lifecycle.Home, store *lifecycle.Store, task string) error {
	reaper, err := reaperOf(home, store, 0, proc.ID{}, zerolog.Nop())
	if err != nil {
		return err
	}
	var left error
	r.Reaped, left = reaper.EndTask(ctx, task)
	err = r.closeClients(ctx, home, store, task)
	if left != nil && errors.As(err, new(notServed)) { // which alone is no fault
		return left
	}
	return errors.Join(left, err)
}

// closeClients closes the clients of a task and of its workers.
func (r *reapedStore) closeClients(ctx context.Context, home *lifecycle.Home, store *lifecycle.Store, task string) error {
	served, err := openAdmin(home, store.Slug)
	if err != nil {
		return err
	}
	clients, err := served.clients(ctx)
	if err != nil {
		return err
	}
	worker := regexp.MustCompile("^" + regexp.QuoteMeta(task) + "(-w[1-9][0-9]*)?$")
	for _, id := range clients {
		if !worker.MatchString(id) {
			continue
		}
		var closed struct{ Tabs int }
		if err := served.brief(ctx, http.MethodPost, "/v1/clients/"+id+"/close", nil, &closed); err != nil {
			return fmt.Errorf("close client %s: %w", id, err)
		}
		r.Tabs += closed.Tabs
	}
	return nil
}
