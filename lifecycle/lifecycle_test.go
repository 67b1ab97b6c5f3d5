package lifecycle

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wantFailure checks that err is a Failure of this kind that names a next step.
func wantFailure(t *testing.T, err error, kind string) *Failure {
	t.Helper()
	f, ok := err.(*Failure)
	if !ok || f.Kind != kind || f.Text == "" || f.Next() == "" {
		t.Fatalf("failure %#v, want kind %s with text and next step", err, kind)
	}
	return f
}

// eventually waits for what no event announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not seen", what)
		}
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
