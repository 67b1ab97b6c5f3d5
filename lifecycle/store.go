package lifecycle

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// Store is one line of the store list: stores/<slug>.json.
type Store struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
	Host string `json:"host,omitempty"` // empty: 127.0.0.1
	Port int    `json:"port,omitempty"` // 0: none yet

	home *Home
}

// firstPort is where allotted ports begin.
const firstPort = 9400

var storeID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckID refuses an id that no store can have. An empty one is none.
func CheckID(id string) error {
	if id != "" && !storeID.MatchString(id) {
		return fmt.Errorf("store id %q: only letters, digits, - and _, at most 64", id)
	}
	return nil
}

// OpenStore reads the store slug, or adds it to the list with id, or with a
// random one when id is empty. Only the holder of the store's Lock may call it.
func (h *Home) OpenStore(slug, id string) (*Store, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	s, err := h.readStore(slug)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if id == "" {
			id = randomHex()
		}
		s = &Store{ID: id, Slug: slug, home: h}
		return s, s.save()
	case err != nil:
		return nil, err
	case id != "" && id != s.ID:
		return nil, fmt.Errorf("the name %s belongs to the store with id %s, not %s; choose another --store name", slug, s.ID, id)
	}
	return s, nil
}

// Addr is the address that is remembered for the store. Without one, a port
// is allotted: the next of a counter, never given to another store again.
func (s *Store) Addr() (string, error) {
	if s.Port == 0 {
		if err := s.allot(); err != nil {
			return "", fmt.Errorf("allot a port: %w", err)
		}
	}
	host := s.Host
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(s.Port)), nil
}

// Remember makes addr the store's address from now on.
func (s *Store) Remember(addr *net.TCPAddr) error {
	s.Host, s.Port = "", addr.Port
	if host := addr.IP.String(); host != "127.0.0.1" {
		s.Host = host
	}
	return s.save()
}

// PortOwner names the other store that port is recorded for, if there is one.
func (s *Store) PortOwner(port int) (string, error) {
	taken, err := s.home.ports()
	if owner := taken[port]; owner != s.Slug {
		return owner, err
	}
	return "", err
}

func (s *Store) allot() error {
	dir, err := s.home.sub("stores")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "next-port")
	counter := flock.New(path, flock.SetPermissions(0o600))
	if err := counter.Lock(); err != nil {
		return err
	}
	defer counter.Unlock()
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	next := firstPort
	if text := strings.TrimSpace(string(b)); text != "" {
		if next, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	taken, err := s.home.ports()
	if err != nil {
		return err
	}
	for taken[next] != "" {
		next++
	}
	if next > 65535 {
		return errors.New("no port is left; give one with --listen")
	}
	// Counted first: a port that is lost in a crash is better than one given twice.
	if err := overwrite(path, strconv.Itoa(next+1)+"\n"); err != nil {
		return err
	}
	s.Port = next
	return s.save()
}

func (s *Store) save() error {
	dir, err := s.home.sub("stores")
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, s.Slug+".json"), append(b, '\n'))
}

func (h *Home) readStore(slug string) (*Store, error) {
	dir, err := h.sub("stores")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, slug+".json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{home: h}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Slug != slug || !storeID.MatchString(s.ID) {
		return nil, fmt.Errorf("%s: not the record of store %s", path, slug)
	}
	return s, nil
}

// ports maps each port that a store has to the slug of that store.
func (h *Home) ports() (map[int]string, error) {
	dir, err := h.sub("stores")
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	taken := map[int]string{}
	for _, file := range files {
		slug, ok := strings.CutSuffix(file.Name(), ".json")
		if !ok {
			continue
		}
		s, err := h.readStore(slug)
		if err != nil {
			return nil, err
		}
		taken[s.Port] = s.Slug
	}
	delete(taken, 0)
	return taken, nil
}

// overwrite puts text at the start of a file that holds a lock, where a
// rename would lose the lock. The counter only grows, so nothing is left of
// the old text; and it is never empty, as it would be after a truncation.
func overwrite(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// randomHex returns 8 random hex digits.
func randomHex() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
