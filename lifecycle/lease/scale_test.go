package lease

import (
	"os"
	"strconv"
	"testing"
)

// scaled shrinks a repeat count by CDPMUX_TEST_SCALE, never below 2.
func scaled(t *testing.T, n int) int {
	t.Helper()
	text := os.Getenv("CDPMUX_TEST_SCALE")
	if text == "" {
		return n
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale <= 0 {
		t.Fatalf("CDPMUX_TEST_SCALE=%q: want a number above 0", text)
	}
	return max(2, int(float64(n)*scale))
}
