package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"cdpmux/proxy"
	"cdpmux/routing"
)

// rules checks --allow-scheme and reads --policy; without the latter there are none.
func (o *serveOptions) rules() (*routing.Rules, error) {
	for _, scheme := range o.allowSchemes {
		if !slices.Contains(routing.Schemes(), scheme) {
			return nil, fmt.Errorf("--allow-scheme %s: give one of %s; all others are open", scheme, strings.Join(routing.Schemes(), ", "))
		}
	}
	if o.policyFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.policyFile)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	rules, err := routing.ParseRules(o.policyFile, text)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	return rules, nil
}

// openAudit opens --audit; without it there is none.
func (o *serveOptions) openAudit(log zerolog.Logger) (*proxy.Audit, error) {
	if o.auditFile == "" {
		return nil, nil
	}
	audit, err := proxy.OpenAudit(o.auditFile, log)
	if err != nil {
		return nil, fmt.Errorf("--audit: %w", err)
	}
	return audit, nil
}
