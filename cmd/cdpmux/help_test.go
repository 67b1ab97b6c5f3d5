package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"cdpmux/lifecycle"
)

// shownCommands are those that --help tells of.
func shownCommands(t *testing.T) []*cobra.Command {
	t.Helper()
	var all []*cobra.Command
	eachCommand(rootCommand(io.Discard, io.Discard), func(cmd *cobra.Command) {
		if !cmd.Hidden {
			all = append(all, cmd)
		}
	})
	if len(all) < 30 {
		t.Fatalf("only %d commands", len(all))
	}
	return all
}

// Every command says in a line what it does, describes its flags, and shows
// examples that could be typed.
func TestHelp(t *testing.T) {
	for _, cmd := range shownCommands(t) {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short %q", path, cmd.Short)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.TrimSpace(f.Usage) == "" {
				t.Errorf("%s: --%s is not described", path, f.Name)
			}
			one := pflag.NewFlagSet("", pflag.ContinueOnError)
			if one.AddFlag(f); strings.Count(one.FlagUsages(), "(default") > 1 {
				t.Errorf("%s: more than one default: %s", path, one.FlagUsages())
			}
		})
		if cmd.Example == "" {
			t.Errorf("%s: no example", path)
		}
		for line := range strings.Lines(cmd.Example) {
			if err := tryExample(path, line); err != nil {
				t.Errorf("%s: example %q: %v", path, line, err)
			}
		}
	}
}

// tryExample finds the calls of cdpmux in a line of shell, and parses each as
// the command line does, without running it. One of them is of path or below.
func tryExample(path, line string) error {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return err
	}
	var calls [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == "cdpmux" {
			var args []string
			for _, word := range call.Args[1:] {
				var b bytes.Buffer
				_ = syntax.NewPrinter().Print(&b, word)
				args = append(args, strings.Trim(b.String(), `'"`))
			}
			calls = append(calls, args)
		}
		return true
	})
	fits := false
	for _, args := range calls {
		cmd, rest, err := rootCommand(io.Discard, io.Discard).Find(args)
		if err != nil {
			return err
		}
		if err := cmd.ParseFlags(rest); err != nil {
			return err
		}
		given := cmd.Flags().Args()
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			if _, err := readServe(given[dash:]); err != nil {
				return err
			}
		}
		if err := cmd.ValidateArgs(given); err != nil {
			return err
		}
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return err
		}
		fits = fits || strings.HasPrefix(cmd.CommandPath()+" ", path+" ")
	}
	if !fits {
		return errors.New("it does not call the command")
	}
	return nil
}

func TestExamplesAreTried(t *testing.T) {
	for _, line := range []string{"cdpmux status --nonsense", "cdpmux nonsense", "cdpmux stop --store a", "cdpmux status extra", "echo cdpmux", "cdpmux status '"} {
		if tryExample("cdpmux status", line) == nil {
			t.Errorf("%q passes", line)
		}
	}
	if err := tryExample("cdpmux status", "X=$(cdpmux status --store shop --json) y # z"); err != nil {
		t.Error(err)
	}
}

func completions(t *testing.T, args ...string) []string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(append([]string{"__completeNoDesc"}, args...), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	return strings.Split(strings.TrimSpace(stdout.String()), "\n")
}

func TestCompletion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	if got := completions(t, "status", "--home", dir, "--store", ""); !slices.Equal(got, []string{":4"}) {
		t.Errorf("stores of no directory: %q", got)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("completion made the directory: %v", err)
	}
	home, err := lifecycle.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, slug := range []string{"shop", "other", "_web"} {
		if _, err := home.OpenStore(slug, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := completions(t, "top", "--home", dir, "--store", ""); !slices.Equal(got, []string{"other", "shop", ":4"}) {
		t.Errorf("stores: %q", got)
	}
	t.Setenv("CDPMUX_HOME", dir)
	if got := completions(t, "serve", "--store", "sh"); !slices.Contains(got, "shop") {
		t.Errorf("stores of CDPMUX_HOME: %q", got)
	}
	if got := completions(t, "trace", "--client", ""); !slices.Equal(got, []string{":4"}) {
		t.Errorf("clients: %q, want nothing, not even files", got)
	}
	if got := completions(t, "serve", "--windows", ""); !slices.Equal(got, []string{"client", "tab", "shared", ":4"}) {
		t.Errorf("words of --windows: %q", got)
	}
	for _, cmd := range shownCommands(t) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); value == "FILE" && !filesOf[f.Name] {
				t.Errorf("%s --%s is not completed with files", cmd.CommandPath(), f.Name)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var stdout, stderr bytes.Buffer
		if code := run([]string{"completion", shell}, &stdout, &stderr); code != exitOK || !strings.Contains(stdout.String(), "cdpmux") {
			t.Errorf("completion %s: exit code %d, %d bytes", shell, code, stdout.Len())
		}
	}
}

func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := filepath.Join(t.TempDir(), "man1")
	for range 2 { // into a directory that is there, too
		var stdout, stderr bytes.Buffer
		if code := run([]string{"man", dir}, &stdout, &stderr); code != exitOK {
			t.Fatalf("exit code %d: %s", code, &stderr)
		}
	}
	for _, cmd := range shownCommands(t) {
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if cmd.Name() == "help" {
			continue // doc writes none
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{"Nov 2023", ".SH NAME", ".SH EXAMPLE"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s: no %q in its page", cmd.CommandPath(), part)
			}
		}
	}
	if pages, _ := filepath.Glob(filepath.Join(dir, "*keeper*")); len(pages) > 0 {
		t.Errorf("a page of what is hidden: %q", pages)
	}
}
