package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// aliases are variables of vibe-seller's that are taken when ours is not set.
var aliases = map[string]string{
	"start-timeout": "VIBE_BROWSER_START_TIMEOUT_S",
	"tab-cap":       "VIBE_TAB_CAP",
	"worker-slots":  "VIBE_BROWSER_WORKER_SLOTS",
}

// fromEnv sets each flag --a-b that is not on the command line from
// CDPMUX_A_B. An empty variable counts as none. A flag that may be repeated
// takes one value a line.
func fromEnv(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || err != nil {
			return
		}
		name := "CDPMUX_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := os.Getenv(name)
		if alias := aliases[f.Name]; value == "" && alias != "" {
			name, value = alias, os.Getenv(alias)
		}
		if value == "" {
			return
		}
		values := []string{value}
		if f.Value.Type() == "stringArray" {
			values = strings.Split(strings.TrimRight(value, "\n"), "\n")
		}
		for _, v := range values {
			if e := flags.Set(f.Name, v); e != nil {
				err = fmt.Errorf("variable %s: %w", name, e)
				return
			}
		}
	})
	return err
}

// seconds is a flag for a duration: Go's form, or plain seconds.
type seconds time.Duration

func (s *seconds) String() string { return time.Duration(*s).String() }
func (s *seconds) Type() string   { return "duration" }

func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no duration such as 90s, 3m or 180", text)
	}
	*s = seconds(d)
	return nil
}

// choice is a flag that takes one of a few words, the first by default.
type choice struct {
	value   string
	allowed []string
}

func oneOf(allowed ...string) choice { return choice{allowed[0], allowed} }

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }

func (c *choice) Set(text string) error {
	for _, word := range c.allowed {
		if text == word {
			c.value = text
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", text, strings.Join(c.allowed, ", "))
}
