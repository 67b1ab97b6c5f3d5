package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"cdpmux/proxy/download"
	"cdpmux/routing"
)

// A browser that comes back while a file is being moved does not take the file
// for one that nobody waits for, nor an unwanted one for a whole one.
func TestMeetWhileFilesAreMoved(t *testing.T) {
	store, err := download.Open(download.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Logger: zerolog.Nop(), Downloads: store})
	stage := func(guid string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(store.Staging(), guid), []byte(guid), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const files = 50
	for i := range files {
		wanted, unwanted := fmt.Sprint("wanted-", i), fmt.Sprint("unwanted-", i)
		stage(wanted)
		stage(unwanted)
		s.settle(&routing.Download{GUID: wanted, Name: "r.txt", Client: "a"})
		s.discard(&routing.Download{GUID: unwanted})
		s.meet(i == 0) // the first is another browser, the rest the same
	}
	s.wg.Wait()
	arrived, err := download.Arrivals(filepath.Dir(store.Staging()))
	if err != nil || len(arrived) != files || s.downloads.Failed != 0 {
		t.Errorf("want %d files and no failure, got %d and %+v (%v)", files, len(arrived), s.downloads, err)
	}
	for _, a := range arrived {
		if a.Client != "a" {
			t.Errorf("taken for nobody's: %+v", a)
		}
	}
}
