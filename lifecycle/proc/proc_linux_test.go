package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestTitleNames(t *testing.T) {
	for cmdline, want := range map[string]bool{
		"/c/chromium --type=zygote --user-data-dir=/p --x\x00":    true,
		"/c/chromium --type=zygote --user-data-dir=/p\x00":        true,
		"/c/chromium --type=zygote --user-data-dir=/p2 --x\x00":   false,
		"/c/chromium --type=zygote --user-data-dir=/p 2 --x\x00":  false,
		"grep\x00--type=zygote --user-data-dir=/p\x00":            false,
		"grep --user-data-dir=/p\x00":                             false,
		"/c/chromium\x00--type=gpu\x00--user-data-dir=/p\x00":     false,
		"sh\x00-c\x00chromium --type=x --user-data-dir=/p -y\x00": false,
	} {
		if got := TitleNames([]byte(cmdline), "/p"); got != want {
			t.Errorf("%q: %v, want %v", cmdline, got, want)
		}
	}
}

func TestSignalHitsOneProcessOnly(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := Identify(cmd.Process.Pid)
	for _, other := range []ID{
		{id.PID, id.Ticks + 1}, // the pid of a process that is gone
		{1, Identify(1).Ticks}, {0, 0}, {-id.PID, id.Ticks},
		Identify(os.Getpid()),
	} {
		if err := other.Signal(syscall.SIGKILL); err == nil {
			t.Errorf("%+v: no error", other)
		}
	}
	if !id.Alive() {
		t.Fatal("the process is gone")
	}
	if err := id.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if id.Alive() || id.Signal(0) == nil {
		t.Error("a process that is gone lives")
	}
}

// A child that nobody has waited for is dead, though its pid still answers.
func TestZombieIsDead(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	id := Identify(cmd.Process.Pid)
	in.Close()
	for id.Alive() { // waiting for its end would take the zombie away
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(id.PID, 0); err != nil {
		t.Errorf("not a zombie: %v", err)
	}
	_ = cmd.Wait()
}

func TestIdentifyIsStable(t *testing.T) {
	if id := Identify(os.Getpid()); id.Ticks == 0 || id != Identify(os.Getpid()) || !id.Alive() || id.Ticks > Now() || Boot() == "" {
		t.Errorf("%+v, now %d, boot %q", id, Now(), Boot())
	}
}
