package lifecycle

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TabsFile is where the proxy of a store keeps whose the tabs are.
func (h *Home) TabsFile(slug string) (string, error) {
	dir, err := h.sub("state")
	return filepath.Join(dir, slug+".tabs.json"), err
}

// MakeAdminToken makes the store's admin token anew: 256 bits in hex, in
// run/<slug>.admin. Only the holder of the store's Lock may call it.
func (h *Home) MakeAdminToken(slug string) (string, error) {
	path, err := h.adminFile(slug)
	if err != nil {
		return "", err
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	token := hex.EncodeToString(b[:])
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

func (h *Home) adminFile(slug string) (string, error) {
	dir, err := h.sub("run")
	return filepath.Join(dir, slug+".admin"), err
}

// StoreAddr is the address that is remembered for a store; "" when there is
// none. It changes nothing.
func (h *Home) StoreAddr(slug string) (string, error) {
	s, err := h.readStore(slug)
	if err != nil || s.Port == 0 {
		return "", err
	}
	return s.Addr()
}

// RunDir makes and returns the directory of the daemons' sockets and pid files.
func (h *Home) RunDir() (string, error) { return h.sub("run") }

// RecordFile is where a store's keeper says which browser runs.
func (h *Home) RecordFile(slug string) (string, error) {
	dir, err := h.sub("state")
	return filepath.Join(dir, slug+".browser.json"), err
}

// Singletons are the links by which Chrome guards its profile. The first
// names its owner, as host-pid.
var Singletons = []string{"SingletonLock", "SingletonSocket", "SingletonCookie"}
