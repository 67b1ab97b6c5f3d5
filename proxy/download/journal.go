package download

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// journalName is the file in a store's directory that says what arrived there:
// a line of JSON each. It is moved away with the files.
const journalName = ".arrived.jsonl"

// Arrival is a file that came into the store's directory.
type Arrival struct {
	Time   time.Time `json:"time"`   // UTC
	Client string    `json:"client"` // "": nobody waited for it any more
	GUID   string    `json:"guid"`
	Name   string    `json:"name"` // path in the store's directory
	URL    string    `json:"url"`  // without user, query and fragment; of data: the scheme alone
	Size   int64     `json:"size"` // bytes
}

// Arrivals reads what arrived in a store's directory since it was archived
// last, oldest first. It needs no running proxy.
func Arrivals(dir string) ([]Arrival, error) {
	text, err := os.ReadFile(filepath.Join(dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Arrival
	for line := range bytes.Lines(text) {
		var a Arrival
		if json.Unmarshal(line, &a) == nil { // else it was cut short: a crash or a full disk
			all = append(all, a)
		}
	}
	return all, nil
}

// record appends a line to the journal.
func (s *Store) record(a Arrival) (err error) {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	s.journal.Lock()
	defer s.journal.Unlock()
	f, err := os.OpenFile(filepath.Join(s.dir, journalName), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if fi.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, fi.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' { // the line before was cut short: this one must not join it
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// publicURL is what of a URL may be written down: queries, fragments and users
// often are secrets, and a data: URL is the file itself.
func publicURL(text string) string {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok {
		return ""
	}
	scheme = strings.ToLower(scheme)
	if scheme == "blob" || scheme == "filesystem" {
		return scheme + ":" + publicURL(rest)
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Scheme == "data" {
		return scheme + ":"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}
