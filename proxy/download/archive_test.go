package download

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStarted(t *testing.T) {
	s := open(t)
	stage(t, s, "settled", "1")
	settle(t, s, File{GUID: "settled", Name: "r.csv", Client: "c"})
	for name, content := range map[string]string{"whole": "2", "part.crdownload": "3", ".org.chromium.x": "4"} {
		stage(t, s, name, content)
	}
	if err := s.Started(now, false); err != nil {
		t.Fatal(err)
	}
	mustList(t, s.Staging(), "")
	mustList(t, s.dir, ".arrived.jsonl .staging r.csv whole")
	all, err := Arrivals(s.dir)
	if err != nil || len(all) != 2 || all[1] != (Arrival{now, "", "whole", "whole", "", 1}) {
		t.Errorf("arrivals: %+v, %v", all, err)
	}
}

// Earlier files are moved away whole, also twice within one second, and a
// start that finds nothing leaves nothing.
func TestArchive(t *testing.T) {
	s := open(t)
	started := func() {
		t.Helper()
		if err := s.Started(now, true); err != nil {
			t.Error(err)
		}
		mustList(t, s.Staging(), "")
	}
	started()
	mustList(t, s.dir, ".staging")
	for _, content := range []string{"1", "2", "3"} {
		stage(t, s, "g", content)
		settle(t, s, File{GUID: "g", Name: "r.csv"})
		if err := os.Mkdir(filepath.Join(s.dir, "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
		stage(t, s, "whole", content)
		started()
		mustList(t, s.dir, ".staging _prev")
	}
	started()
	prev := filepath.Join(s.dir, prevName)
	mustList(t, prev, "20260102T030405Z 20260102T030405Z (1) 20260102T030405Z (2)")
	for stamp, content := range map[string]string{"20260102T030405Z": "1", "20260102T030405Z (1)": "2", "20260102T030405Z (2)": "3"} {
		dir := filepath.Join(prev, stamp)
		mustList(t, dir, ".arrived.jsonl folder r.csv whole")
		mustHold(t, filepath.Join(dir, "r.csv"), content)
		mustHold(t, filepath.Join(dir, "whole"), content)
		if all, err := Arrivals(dir); err != nil || len(all) != 2 {
			t.Errorf("arrivals in %s: %+v, %v", dir, all, err)
		}
	}
	// A file of the archive's name does not get into its way.
	stage(t, s, "g", "4")
	if p := settle(t, s, File{GUID: "g", Name: prevName}); filepath.Base(p.Path) != "_prev (1)" {
		t.Errorf("a file named %s: %+v", prevName, p)
	}
}

// Files go on arriving after somebody removed the directory.
func TestStartedAnew(t *testing.T) {
	s := open(t)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Started(now, true); err != nil {
		t.Fatal(err)
	}
	stage(t, s, "g", "x")
	mustHold(t, settle(t, s, File{GUID: "g", Name: "r.csv"}).Path, "x")
}

func TestRescue(t *testing.T) {
	s := open(t)
	for _, name := range []string{"known", "lost", "growing.crdownload"} {
		stage(t, s, name, name)
	}
	write(t, filepath.Join(s.dir, "lost"), "another")
	if err := s.Rescue(now, func(guid string) bool { return guid == "known" }); err != nil {
		t.Fatal(err)
	}
	mustList(t, s.Staging(), "growing.crdownload known")
	mustHold(t, filepath.Join(s.dir, "lost"), "another")
	mustHold(t, filepath.Join(s.dir, "lost (1)"), "lost")
	if all, err := Arrivals(s.dir); err != nil || len(all) != 1 || all[0].GUID != "lost" || all[0].Client != "" {
		t.Errorf("arrivals: %+v, %v", all, err)
	}
}
