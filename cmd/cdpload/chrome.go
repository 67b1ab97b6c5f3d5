package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"cdpmux/lifecycle/chrome"
)

// startChromium starts a browser with a fresh profile, as cdpmux itself would.
func (b *bench) startChromium(ctx context.Context) (address string, stop func(), err error) {
	profile, err := os.MkdirTemp(b.home, "profile")
	if err != nil {
		return "", nil, err
	}
	browser, err := chrome.New(chrome.Config{Profile: profile, Headless: true, NoSandbox: os.Geteuid() == 0, Keeper: []string{b.binary, "keeper"}})
	if err != nil {
		return "", nil, err
	}
	endpoint, err := browser.Start(ctx)
	if err != nil {
		return "", nil, err
	}
	return endpoint.WS, func() { browser.Stop(context.WithoutCancel(ctx)) }, nil
}

// withChromium runs do with two columns: the browser, and cdpmux before it.
func (b *bench) withChromium(ctx context.Context, do func(direct, mux column) error) error {
	address, stop, err := b.startChromium(ctx)
	if err != nil {
		return err
	}
	defer stop()
	mux, stopMux, err := b.startMux(ctx, address)
	if err != nil {
		return err
	}
	defer stopMux()
	return do(column{name: "direct", url: address}, mux)
}

// versus enters a row of cdpmux against the browser itself.
func (b *bench) versus(mark, work, unit string, found map[string][]float64, goal float64, atMost bool) {
	x := ratio(found["cdpmux"], found["direct"])
	sign, holds := "≥", x >= goal
	if atMost {
		sign, holds = "≤", x <= goal
	}
	b.add(row{
		Mark: mark, Work: work, Unit: unit, Columns: found,
		Goal: fmt.Sprintf("%s %.2f × direct", sign, goal), Figure: fmt.Sprintf("%.2f × direct", x),
	}, holds)
}

func (b *bench) chromeNeighbour(ctx context.Context) error {
	return b.withChromium(ctx, func(direct, mux column) error {
		found, err := b.measure(ctx, []column{direct, mux}, p99, commands(1, 1), kind("replies", nil))
		if err == nil {
			b.versus("P8a", "Chromium: p99 beside 64 MiB replies", "µs", found, 1.5, true)
		}
		return err
	})
}

func (b *bench) chromeEvaluate(ctx context.Context) error {
	return b.withChromium(ctx, func(direct, mux column) error {
		found, err := b.measure(ctx, []column{direct, mux}, repliesPerSec, commands(16, 1))
		if err == nil {
			b.versus("P12", "Chromium: evaluate, 16 clients", "replies/s", found, 0.95, false)
		}
		return err
	})
}

func (b *bench) chromeTabs(ctx context.Context) error {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>cdpload</title><h1>cdpload</h1>")
	}))
	defer site.Close()
	return b.withChromium(ctx, func(direct, mux column) error {
		w := kind("tabs", func(w *work) { w.Page = site.URL })
		found, err := b.measure(ctx, []column{direct, mux}, p50, w)
		if err == nil {
			b.versus("P13", "Chromium: a tab's life, p50", "µs", found, 1.05, true)
		}
		return err
	})
}

// starts is P14: until a proxy is ready whose browser runs, and until the
// first reply of one that has to start its browser.
func (b *bench) starts(ctx context.Context) error {
	var attach, bare, cold []float64
	ms := func(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1e3 }
	for range b.rounds {
		began := time.Now()
		mux, stop, err := b.startMux(ctx, b.fake)
		if err != nil {
			return err
		}
		err = ready(ctx, hostOf(mux.url))
		attach = append(attach, ms(began))
		stop()
		if err != nil {
			return err
		}

		began = time.Now()
		address, stop, err := b.startChromium(ctx)
		if err != nil {
			return err
		}
		err = firstReply(ctx, address)
		bare = append(bare, ms(began))
		stop()
		if err != nil {
			return err
		}

		flags := []string{"--headless"}
		if os.Geteuid() == 0 {
			flags = append(flags, "--no-sandbox")
		}
		began = time.Now()
		mux, stop, err = b.startServe(ctx, flags...)
		if err != nil {
			return err
		}
		err = firstReply(ctx, mux.url)
		cold = append(cold, ms(began))
		stop()
		if err != nil {
			return err
		}
	}
	n := median(attach)
	b.add(row{Mark: "P14", Work: "start until ready, the browser runs", Unit: "ms", Columns: map[string][]float64{"cdpmux": attach}, Goal: "≤ 100 ms", Figure: fmt.Sprintf("%.0f ms", n)}, n <= 100)
	b.versus("P14", "start until the first reply, with a cold Chromium", "ms", map[string][]float64{"direct": bare, "cdpmux": cold}, 1.1, true)
	return nil
}

func firstReply(ctx context.Context, url string) error {
	w, err := dial(ctx, strings.ReplaceAll(url, "{i}", "1"))
	if err != nil {
		return err
	}
	defer w.close()
	return (&client{wire: w}).call("", "Browser.getVersion", `{}`, nil)
}
