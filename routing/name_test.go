package routing

import "testing"

func TestShortID(t *testing.T) {
	for id, want := range map[string]string{
		"a": "a", "1a2b3c4d": "1a2b3c4d", "1a2b3c4d5e6f": "1a2b3c4d", "1a2b3c4d5e6f-w12": "1a2b3c4d-w12",
		"1a2b3c4d-w2": "1a2b3c4d-w2", "1a2b3c4d-west": "1a2b3c4d", "1a2b3c4d-w": "1a2b3c4d",
	} {
		if got := ShortID(id); got != want {
			t.Errorf("%s is %s in logs, want %s", id, got, want)
		}
	}
}
