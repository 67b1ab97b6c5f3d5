package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode"

	"golang.org/x/term"
)

// screen shows one picture in the place of the other on a terminal; elsewhere
// one after the other.
type screen struct {
	out     io.Writer
	term    *os.File // nil: no terminal
	restore func()
}

// The alternate screen leaves what was on the terminal as it was.
const (
	screenOpen  = "\x1b[?1049h\x1b[?25l"
	screenClose = "\x1b[?25h\x1b[?1049l"
)

// openScreen takes the terminal, if out is one. quit is called when the user
// types q or Ctrl-C; close gives the terminal back.
func openScreen(in *os.File, out io.Writer, quit func()) (*screen, error) {
	s := &screen{out: out, restore: func() {}}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s, nil
	}
	s.term = f
	if term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
		s.restore = func() { _ = term.Restore(int(in.Fd()), before) }
		go awaitQuit(in, quit) // until the process ends: a read of a terminal cannot be called off
	}
	_, err := io.WriteString(out, screenOpen)
	return s, err
}

func awaitQuit(in io.Reader, quit func()) {
	const ctrlC = 3
	key := make([]byte, 1)
	for {
		if _, err := in.Read(key); err != nil {
			return
		}
		if key[0] == 'q' || key[0] == 'Q' || key[0] == ctrlC {
			quit()
			return
		}
	}
}

func (s *screen) close() {
	if s.term != nil {
		_, _ = io.WriteString(s.out, screenClose)
	}
	s.restore()
}

// show writes a picture: lines of printable text.
func (s *screen) show(picture []byte) error {
	if s.term == nil {
		_, err := s.out.Write(append(picture, '\n'))
		return err
	}
	width, height, err := term.GetSize(int(s.term.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	_, err = s.out.Write(frame(picture, width, height))
	return err
}

// frame is a picture for a terminal of this size, from its upper left corner.
// Each line is cut to the width, and says what it leaves of the line before it.
func frame(picture []byte, width, height int) []byte {
	out := []byte("\x1b[H")
	lines := bytes.Split(bytes.TrimRight(picture, "\n"), []byte("\n"))
	if hidden := len(lines) - height; hidden > 0 {
		lines = append(lines[:height-1:height-1], fmt.Appendf(nil, "… %d more lines", hidden+1))
	}
	for i, line := range lines {
		if i > 0 {
			out = append(out, '\r', '\n')
		}
		out = append(out, cut(string(line), width)...)
		out = append(out, "\x1b[K"...) // the rest of the line
	}
	return append(out, "\x1b[J"...) // and of the screen
}

// cut shortens a line to so many cells of a terminal.
func cut(line string, width int) string {
	used, end := 0, 0 // end is where a cut leaves room for the ellipsis
	for i, r := range line {
		n := cells(r)
		if used+n > width {
			return line[:end] + "…"
		}
		if used += n; used < width {
			end = i + len(string(r))
		}
	}
	return line
}

// cells is how much room a character takes on a terminal.
func cells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// wide are the characters of two cells: East Asian ones and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0xa4cf, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}
