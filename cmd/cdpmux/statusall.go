package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"text/tabwriter"

	"cdpmux/lifecycle"
	"cdpmux/proxy/admin"
)

// storeState is a line of status for every store.
type storeState struct {
	Store   string `json:"store"`
	Addr    string `json:"addr,omitempty"`
	PID     int    `json:"pid,omitempty"` // of the proxy
	State   string `json:"state"`         // of the browser, or one of the constants below
	Clients int    `json:"clients"`       // connected, or their tabs wait for them
	Tabs    int    `json:"tabs"`
	Error   string `json:"error,omitempty"`
}

// States of a store whose proxy says nothing of its browser.
const (
	stateDown     = "down"     // no proxy
	stateSilent   = "silent"   // a proxy that does not answer
	stateDisabled = "disabled" // no proxy, and none is to be started
)

// all shows the state of every store. They are asked at the same time: one
// that does not answer holds up no other.
func (o *statusOptions) all(home *lifecycle.Home, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	states, err := statesOf(ctx, home)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(states)
	}
	return printStates(stdout, states)
}

func statesOf(ctx context.Context, home *lifecycle.Home) ([]storeState, error) {
	stores, err := home.Stores()
	if err != nil {
		return nil, err
	}
	states := make([]storeState, len(stores))
	var asked sync.WaitGroup
	for i, s := range stores {
		asked.Go(func() { states[i] = stateOf(ctx, home, s) })
	}
	asked.Wait()
	return states, nil
}

func printStates(stdout io.Writer, states []storeState) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STORE\tSTATE\tCLIENTS\tTABS\tADDRESS\tPID\tERROR")
	for _, s := range states {
		pid := ""
		if s.PID != 0 {
			pid = strconv.Itoa(s.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", s.Store, s.State, s.Clients, s.Tabs, orDash(s.Addr), orDash(pid), plain(s.Error))
	}
	return table.Flush()
}

func stateOf(ctx context.Context, home *lifecycle.Home, store *lifecycle.Store) storeState {
	s := storeState{Store: store.Slug}
	s.Addr, _ = home.StoreAddr(store.Slug)
	if at, held, _ := home.Holder(store.Slug); held {
		s.PID, s.Addr = at.PID, cmp.Or(at.Addr, s.Addr)
	}
	served, err := openAdmin(home, store.Slug)
	switch {
	case errors.As(err, new(notServed)):
		s.State = stateDown
		if store.Disabled {
			s.State = stateDisabled
		}
		return s
	case err == nil:
		var st admin.Status
		if err = served.call(ctx, http.MethodGet, "/status", nil, &st); err == nil {
			s.fill(&st)
			return s
		}
	}
	s.State, s.Error = stateSilent, err.Error()
	return s
}

func (s *storeState) fill(st *admin.Status) {
	s.State, s.Error = st.Browser.State, st.Browser.Error
	for _, c := range st.Clients {
		if c.State != "http" {
			s.Clients++
		}
		s.Tabs += len(c.Tabs)
	}
}
