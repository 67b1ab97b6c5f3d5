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
)

// Store is one line of the store list: stores/<slug>.json.
type Store struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
	Host string `json:"host,omitempty"` // empty: 127.0.0.1
	Port int    `json:"port,omitempty"` // 0: none yet

	Socket string `json:"socket,omitempty"` // path of a Unix socket, which it listens on instead

	Disabled   bool             `json:"disabled,omitempty"`    // no client is let in
	Serve      []string         `json:"serve,omitempty"`       // flags with which ensure starts serve
	TaskFormat string           `json:"task_format,omitempty"` // of session names: "any", or empty for 8 hex digits
	MaxClients *uint            `json:"max_clients,omitempty"` // of its last serve
	Wrapper    *WrapperSettings `json:"wrapper,omitempty"`     // nil: nobody chose any

	home *Home
}

// WrapperSettings are what an operator chose for the store's wrapper, so that
// every later writing of it is the same.
type WrapperSettings struct {
	Real      string `json:"real,omitempty"`
	StartURL  string `json:"start_url,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	Slots     *int   `json:"slots,omitempty"`
	TimeoutS  int    `json:"timeout_s,omitempty"`
}

var storeID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckID refuses an id that no store can have. An empty one is none.
func CheckID(id string) error {
	if id != "" && !storeID.MatchString(id) {
		return fmt.Errorf("store id %q: only letters, digits, - and _, at most 64", id)
	}
	return nil
}

// OpenStore reads the store slug, or adds it to the list with id, or with a
// random one when id is empty.
func (h *Home) OpenStore(slug, id string) (*Store, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	list, err := h.lockList()
	if err != nil {
		return nil, err
	}
	defer list.Unlock()
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

// Addr is the address that is remembered for the store: HOST:PORT, or
// unix:PATH. Without one, a port is allotted: the next of a counter, never
// given to another store again.
func (s *Store) Addr() (string, error) {
	if s.Socket != "" {
		return "unix:" + s.Socket, nil
	}
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

// Remember makes addr, of TCP or a Unix socket, the store's address from now
// on. It refuses what MayHave does.
func (s *Store) Remember(addr net.Addr) error {
	if err := s.MayHave(addr); err != nil {
		return err
	}
	return s.Update(func(s *Store) {
		tcp, ok := addr.(*net.TCPAddr)
		if !ok {
			s.Socket = addr.String() // the port stays the store's
			return
		}
		s.Host, s.Port, s.Socket = "", tcp.Port, ""
		if host := tcp.IP.String(); host != "127.0.0.1" {
			s.Host = host
		}
	})
}

// MayHave refuses the port of another store.
func (s *Store) MayHave(addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	taken, err := s.home.ports()
	if owner := taken[tcp.Port]; err == nil && owner != "" && owner != s.Slug {
		return fmt.Errorf("port %d belongs to the store %s; choose another with --listen", tcp.Port, owner)
	}
	return err
}

// Update changes the store's record as it is now, whatever another process has
// made of it since s was read.
func (s *Store) Update(change func(*Store)) error {
	list, err := s.home.lockList()
	if err != nil {
		return err
	}
	defer list.Unlock()
	now, err := s.home.readStore(s.Slug)
	if err != nil {
		return err
	}
	change(now)
	*s = *now
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

// randomHex returns 8 random hex digits.
func randomHex() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
