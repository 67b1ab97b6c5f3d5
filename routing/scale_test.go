package routing

import (
	"os"
	"strconv"
	"testing"
)

// testScale is the part of the full counts to run: CDPMUX_TEST_SCALE, or all.
func testScale(t *testing.T) float64 {
	t.Helper()
	v := os.Getenv("CDPMUX_TEST_SCALE")
	if v == "" {
		return 1
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		t.Fatalf("CDPMUX_TEST_SCALE=%s: must be a number such as 0.05", v)
	}
	return f
}
