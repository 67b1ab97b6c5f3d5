package main

import (
	"strings"
	"unicode"
)

// plain is text that others wrote, made fit for a line on a terminal: what
// would move its cursor, start a sequence or turn its direction is a blank, or
// gone.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r): // controls, C1 ones too, and formatting characters
			return -1
		}
		return r
	}, text)
}

// plainMessage is plain for what a log line says.
func plainMessage(text any) string {
	s, _ := text.(string) // nil: it says nothing
	return plain(s)
}
