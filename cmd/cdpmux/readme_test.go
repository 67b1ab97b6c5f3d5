package main

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// The README's table has the flags of serve, all of them and in their order.
func TestReadmeFlags(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, real []string
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)").FindAllSubmatch(readme, -1) {
		documented = append(documented, string(row[1]))
	}
	serveCommand().Flags().VisitAll(func(f *pflag.Flag) { real = append(real, f.Name) })
	if !slices.Equal(documented, real) {
		t.Errorf("flags in README.md:\n%q\nflags of serve:\n%q", documented, real)
	}
}
