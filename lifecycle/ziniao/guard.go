package ziniao

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// entry is a store's mark in the guard's directory: the client is logged in
// with one account, so all the stores of a machine have to be of one.
type entry struct {
	Store   string  `json:"store"`
	Account string  `json:"account"` // a fingerprint
	Proc    proc.ID `json:"proc"`
	Boot    string  `json:"boot"`
}

// fingerprint names an account without giving it away.
func (a Account) fingerprint() string {
	sum := sha256.Sum256([]byte(a.Company + "\x00" + a.Username))
	return fmt.Sprintf("%x", sum[:8])
}

// guard notes that this store uses its account, or refuses when others use
// another one. Entries of the dead do not count.
func (z *Ziniao) guard() error {
	dir, err := z.guardDir()
	if err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dir, "ziniao.lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return fmt.Errorf("ziniao account guard: %w", err)
	}
	defer lock.Unlock()
	mark := z.mark(dir)
	mine := entry{z.cfg.Store, z.cfg.Account.fingerprint(), proc.Identify(os.Getpid()), proc.Boot()}
	files, err := filepath.Glob(filepath.Join(dir, "ziniao-*.json"))
	if err != nil {
		return err
	}
	var others []string
	for _, path := range files {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var e entry
		if err != nil || json.Unmarshal(data, &e) != nil || e.Boot != mine.Boot || !e.Proc.Alive() {
			_ = os.Remove(path)
			continue
		}
		if e.Account != mine.Account && path != mark {
			others = append(others, fmt.Sprintf("%s (pid %d)", e.Store, e.Proc.PID))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		return &lifecycle.Failure{
			Kind: lifecycle.AccountConflict,
			Text: "another Ziniao account is in use on this machine, by " + strings.Join(others, ", "),
		}
	}
	data, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	return lifecycle.WriteFile(mark, data)
}

// leave takes the mark away, when the store is closed.
func (z *Ziniao) leave() {
	if dir, err := z.guardDir(); err == nil {
		_ = os.Remove(z.mark(dir))
	}
}

func (z *Ziniao) guardDir() (string, error) {
	if z.cfg.Guard != "" {
		return z.cfg.Guard, nil
	}
	return lifecycle.MachineDir()
}

// mark is the file of this store's entry. Another state directory may have a
// store of the same name.
func (z *Ziniao) mark(dir string) string {
	home := sha256.Sum256([]byte(z.cfg.Record))
	return filepath.Join(dir, fmt.Sprintf("ziniao-%s-%x.json", z.cfg.Store, home[:4]))
}
