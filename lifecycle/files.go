package lifecycle

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TabsFile is where the proxy of a store keeps whose the tabs are.
func (h *Home) TabsFile(slug string) (string, error) {
	dir, err := h.sub("state")
	return filepath.Join(dir, slug+".tabs.json"), err
}

// SessionsFile is where the proxy of a store keeps its sessions.
func (h *Home) SessionsFile(slug string) (string, error) {
	dir, err := h.sub("state")
	return filepath.Join(dir, slug+".sessions"), err
}

// MakeAdminToken makes the store's admin token anew: 256 bits in hex, in
// run/<slug>.admin. Only the holder of the store's Lock may call it.
func (h *Home) MakeAdminToken(slug string) (string, error) {
	path, err := h.adminFile(slug)
	if err != nil {
		return "", err
	}
	token := randomToken()
	if err := WriteFile(path, []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	return token, nil
}

// AdminToken reads the token of the proxy that serves a store.
func (h *Home) AdminToken(slug string) (string, error) {
	path, err := h.adminFile(slug)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// StoreToken is the token that lets clients into a store: 256 bits in hex, in
// run/<slug>.token. It is made when it is first asked for, and stays.
func (h *Home) StoreToken(slug string) (string, error) {
	dir, err := h.sub("run")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, slug+".token")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeOnce(path, randomToken()+"\n"); err != nil {
			return "", fmt.Errorf("store token: %w", err)
		}
		b, err = os.ReadFile(path)
	}
	token := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", fmt.Errorf("store token: %w", err)
	case len(token) < minToken:
		return "", fmt.Errorf("%s: a store token has at least %d characters; delete the file to have one made", path, minToken)
	}
	return token, nil
}

// minToken is for tokens that an operator put there.
const minToken = 32

func randomToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// makeOnce writes a file that is not there yet, in one step. Of those who do it
// at the same time one is first, and the others leave that file alone.
func makeOnce(path, text string) error {
	temp := path + "." + randomHex()
	defer func() { _ = os.Remove(temp) }()
	if err := WriteFile(temp, []byte(text)); err != nil {
		return err
	}
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (h *Home) adminFile(slug string) (string, error) {
	dir, err := h.sub("run")
	return filepath.Join(dir, slug+".admin"), err
}

// StoreAddr is the address that is remembered for a store; "" when there is
// none. It changes nothing.
func (h *Home) StoreAddr(slug string) (string, error) {
	s, err := h.readStore(slug)
	if err != nil || s.Port == 0 && s.Socket == "" {
		return "", err
	}
	return s.Addr()
}

// RunDir makes and returns the directory of the daemons' sockets and pid files.
func (h *Home) RunDir() (string, error) { return h.sub("run") }

// TmpDir makes and returns the directory in which each session of an agent's
// tool has its folder. The wrapper scripts make those.
func (h *Home) TmpDir() (string, error) { return h.sub("tmp") }

// RecordFile is where a store's keeper says which browser runs.
func (h *Home) RecordFile(slug string) (string, error) {
	dir, err := h.sub("state")
	return filepath.Join(dir, slug+".browser.json"), err
}

// ZiniaoFile is where a proxy says which browser of the Ziniao client it opened.
func (h *Home) ZiniaoFile(slug string) (string, error) {
	dir, err := h.sub("state")
	return filepath.Join(dir, slug+".ziniao.json"), err
}

// UpstreamSocket is where a store's keeper relays its browser's pipe.
func (h *Home) UpstreamSocket(slug string) (string, error) {
	dir, err := h.sub("run")
	return filepath.Join(dir, slug+".up"), err
}

// Singletons are the links by which Chrome guards its profile. The first
// names its owner, as host-pid.
var Singletons = []string{"SingletonLock", "SingletonSocket", "SingletonCookie"}
