// Package doctor looks at what a store needs before it can be served: the
// browser, its sandbox, the port, the directories, the machine. It changes
// nothing: it makes no file, takes no lock for longer than a look, and starts
// no browser.
package doctor

import (
	"context"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/lifecycle/ziniao"
)

// Level says how bad a finding is.
type Level string

// A Warn works, but perhaps not well, or not for everything. A Fail has to be
// mended first.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is what one look found.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Next  string `json:"next,omitempty"` // what to do; of an OK nothing
}

// Plan is how a store is to be served, as far as it can be looked at.
type Plan struct {
	Home    *lifecycle.Home // opened by lifecycle.LookHome, with HomeErr
	HomeErr error
	Store   string // slug; "" looks at the machine alone
	Listen  string // given address; "" is the store's remembered one

	Browser  string // chrome, attach or ziniao
	Chrome   chrome.Config
	Endpoint string // of attach
	Ziniao   ziniao.Config
}

// patience bounds each look that asks another program.
const patience = 5 * time.Second

// Examine looks at everything, the machine first.
func Examine(ctx context.Context, p Plan) []Finding {
	var all []Finding
	switch p.Browser {
	case "attach":
		all = append(all, attached(ctx, p.Endpoint))
	case "ziniao":
		all = append(all, ziniaoState(ctx, p.Ziniao))
	default:
		browser, binary := installed(ctx, p.Chrome.Path)
		all = append(all, browser, sandbox(sandboxFacts(ctx, binary, p.Chrome.NoSandbox)), display(p.Chrome.Headless))
	}
	all = append(all, home(p.Home, p.HomeErr))
	if p.Store != "" {
		all = append(all, store(p), port(ctx, p))
		if p.Browser == "chrome" {
			all = append(all, profile(p))
		}
	}
	all = append(all, disk(p.Home.Dir()), files(), sharedMemory(), memory(), tasks(), ownCgroup(), proxies(), clock(time.Now(), p.Home.Dir()))
	if f, ok := watches(); ok {
		all = append(all, f)
	}
	return all
}

// Worst is the level of the worst finding.
func Worst(all []Finding) Level {
	worst := OK
	for _, f := range all {
		if f.Level == Fail || f.Level == Warn && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

func ok(check, text string) Finding         { return Finding{check, OK, text, ""} }
func warn(check, text, next string) Finding { return Finding{check, Warn, text, next} }
func fail(check, text, next string) Finding { return Finding{check, Fail, text, next} }
