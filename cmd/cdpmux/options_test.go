package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/ziniao/ziniaotest"
)

// Whatever a store is called, its account is noted in a file of the guard's
// own directory.
func TestZiniaoGuardKnowsTheSlug(t *testing.T) {
	s := ziniaotest.New("acme", "op", "secret")
	defer s.Close()
	s.Add("shop", 1, "")
	for slug, args := range map[string][]string{
		"shop-a-b": {"--store", "Shop A/B"},
		"store-1":  {"--store", "..", "--id", "1"},
		"_web":     {"--web"},
	} {
		dir := t.TempDir()
		account := filepath.Join(dir, "account")
		if err := os.WriteFile(account, []byte(`{"company":"acme","username":"op","password":"secret"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		o := newServeOptions()
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.bind(flags)
		if err := flags.Parse(append(args, "--browser", "ziniao", "--ziniao-addr", strings.TrimPrefix(s.URL, "http://"),
			"--ziniao-profile", "shop", "--ziniao-account", account)); err != nil {
			t.Fatal(err)
		}
		o.ziniao.Guard = filepath.Join(dir, "guard")
		if err := os.Mkdir(o.ziniao.Guard, 0o700); err != nil {
			t.Fatal(err)
		}
		b, err := o.backend(zerolog.Nop(), nil, places{ziniao: filepath.Join(dir, "record")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Start(t.Context()); err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		if marks, _ := filepath.Glob(filepath.Join(o.ziniao.Guard, "ziniao-"+slug+"-*.json")); len(marks) != 1 {
			t.Errorf("%q: marks %q, want one of %s", args, marks, slug)
		}
		b.Stop(t.Context())
	}
}

// slow is a server whose browser is there and does not answer.
type slow struct{}

func (slow) Up(context.Context) (bool, error) {
	return false, fmt.Errorf("start: %w", &lifecycle.Failure{Kind: lifecycle.BrowserUnreachable})
}

// With --eager, a Chrome that is there already may be slow.
func TestEagerBesideSlowChrome(t *testing.T) {
	for browser, goesOn := range map[string]bool{"chrome": true, "attach": false} {
		o := newServeOptions()
		o.eager, o.browser.value = true, browser
		if err := o.startEarly(t.Context(), slow{}, zerolog.Nop()); (err == nil) != goesOn {
			t.Errorf("%s: %v", browser, err)
		}
	}
}
