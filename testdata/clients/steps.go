// Package clients is for the scenarios in Go what steps.mjs is for Node: one
// JSON line per step of steps.txt on stdout.
package clients

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const stepLimit = 20 * time.Second

// Arguments are the endpoint and the site's URL that a scenario was started with.
func Arguments() (endpoint, site string) {
	if len(os.Args) != 3 {
		fmt.Fprintf(os.Stderr, "usage: %s ENDPOINT SITE_URL\n", os.Args[0])
		os.Exit(2)
	}
	return os.Args[1], os.Args[2]
}

// Step runs one step and prints what it returns. An error, or no result within
// 20 s, ends the program.
func Step(name string, run func() (any, error)) {
	type result struct {
		got any
		err error
	}
	results := make(chan result, 1)
	go func() {
		got, err := run()
		results <- result{got, err}
	}()
	select {
	case r := <-results:
		if r.err != nil {
			fail(name, r.err)
		}
		print(map[string]any{"step": name, "ok": true, "got": r.got})
	case <-time.After(stepLimit):
		fail(name, fmt.Errorf("no result within %v", stepLimit))
	}
}

// Skip prints a step that the client has no means for.
func Skip(name string) { Step(name, func() (any, error) { return "-", nil }) }

func fail(name string, err error) {
	print(map[string]any{"step": name, "ok": false, "error": err.Error()})
	os.Exit(1)
}

func print(line any) {
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		panic(err)
	}
}

// Size reads width and height from a PNG's header.
func Size(png []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if len(png) < 24 || string(png[:8]) != "\x89PNG\r\n\x1a\n" {
		return nil, fmt.Errorf("not a PNG: %d bytes that start with %.8q", len(png), png)
	}
	return []uint32{binary.BigEndian.Uint32(png[16:]), binary.BigEndian.Uint32(png[20:])}, nil
}
