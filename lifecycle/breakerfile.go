package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// BreakerFile is where a store's breaker outlives its proxy.
func (h *Home) BreakerFile(slug string) (string, error) {
	dir, err := h.sub("state")
	return filepath.Join(dir, slug+".breaker.json"), err
}

// LoadBreaker reads a breaker, or returns a closed one when there is no file.
func LoadBreaker(path string, policy BreakerPolicy) (*Breaker, error) {
	b := &Breaker{}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, b)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("breaker %s: %w; delete the file to start with a fresh budget", path, err)
	}
	b.Policy = policy
	return b, nil
}

// Save writes the breaker to path, in one step.
func (b *Breaker) Save(path string) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'))
}
