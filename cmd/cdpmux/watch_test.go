package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/proxy"
)

// What lifecycle says of a browser's life is what proxy shows of it: they
// share no type.
func TestLifeIsShown(t *testing.T) {
	server := proxy.New(proxy.Config{
		Logger: zerolog.Nop(), AdminToken: "secret",
		Life: proxy.Life{View: func() any {
			return lifecycle.View{
				Relaunches: 7, BreakerOpen: true, NextTrial: time.Now().Add(90*time.Minute + 30*time.Second),
				Holds:   map[string]time.Time{"night shift": time.Now().Add(time.Hour + 30*time.Second)},
				Receipt: &lifecycle.Receipt{Method: lifecycle.MethodForced},
			}
		}},
	})
	defer func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	web := httptest.NewServer(server)
	defer web.Close()
	for path, wants := range map[string][]string{
		"/metrics": {"\ncdpmux_breaker_open 1\n", "\ncdpmux_breaker_relaunches 7\n"},
		"/":        {"7 relaunches counted, next try in 1 h 30 m", "held by night shift for 1 h 0 m", "last stop: forced, <b class=\"bad\">not verified</b>", ">open<"},
	} {
		req, err := http.NewRequest(http.MethodGet, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		req.SetBasicAuth("operator", "secret")
		resp, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(body), want) {
				t.Errorf("%s: HTTP %d without %q", path, resp.StatusCode, want)
			}
		}
	}
}
