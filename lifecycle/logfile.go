package lifecycle

import (
	"os"
	"path/filepath"
)

// maxLog is the size from which a log is put aside before it is used again.
const maxLog = 10 << 20

// OpenLog opens log/<slug>.log to append to. The one before it, when it had
// grown large, is kept as log/<slug>.log.1.
func (h *Home) OpenLog(slug string) (*os.File, error) {
	dir, err := h.sub("log")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, slug+".log")
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
}
