package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal of 30 columns and 8 lines.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(user.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 8, Col: 30}); err != nil {
		t.Fatal(err)
	}
	return user, program
}

// shown collects what a program writes to its terminal.
type shown struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shown) read(user *os.File) {
	b := make([]byte, 4096)
	for {
		n, err := user.Read(b)
		s.mu.Lock()
		s.text.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// On a terminal, top takes the alternate screen, renews it, and gives the
// terminal back as it was.
func TestTopOnATerminal(t *testing.T) {
	for name, key := range map[string]string{"q": "q", "Ctrl-C": "\x03"} {
		t.Run(name, func(t *testing.T) {
			d := startDouble(t)
			d.says(200, busyStatus)
			user, program := openTerminal(t)
			before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			var out shown
			read := make(chan struct{})
			go func() { out.read(user); close(read) }()
			ended := make(chan error, 1)
			go func() { ended <- new(topOptions).run(d.home, "demo", program, program) }()
			for deadline := time.Now().Add(20 * time.Second); strings.Count(out.String(), "alice") < 2; {
				if time.Now().After(deadline) {
					t.Fatalf("not renewed: %q", out.String())
				}
				time.Sleep(10 * time.Millisecond) // a terminal tells of nothing
			}
			if _, err := user.WriteString(key); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on")
			}
			after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if *after != *before {
				t.Errorf("terminal left as %+v, was %+v", *after, *before)
			}
			program.Close() // the reader ends
			<-read
			user.Close()
			text := out.String()
			if !strings.HasPrefix(text, screenOpen) || !strings.HasSuffix(text, screenClose) {
				t.Errorf("screen not taken and given back: %q", text)
			}
		})
	}
}
