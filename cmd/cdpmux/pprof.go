//go:build pprof

// With -tags pprof, which no release has, CDPMUX_PPROF=HOST:PORT serves
// profiles: go tool pprof http://HOST:PORT/debug/pprof/profile
package main

import (
	"net/http"
	_ "net/http/pprof" // its handlers
	"os"
	"time"
)

func init() {
	if addr := os.Getenv("CDPMUX_PPROF"); addr != "" {
		server := &http.Server{Addr: addr, ReadHeaderTimeout: 10 * time.Second}
		go func() { panic(server.ListenAndServe()) }()
	}
}
