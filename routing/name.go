package routing

import "strings"

// ShortID is a client id in logs: its first eight characters, with the worker
// suffix kept.
func ShortID(id string) string {
	if len(id) <= 8 {
		return id
	}
	short := id[:8]
	if i := strings.LastIndex(id, "-w"); i >= 8 && isDigits(id[i+2:]) {
		short += id[i:]
	}
	return short
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
