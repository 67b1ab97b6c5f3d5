package wrapper

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
)

// Header is what a script says of itself in its first bytes.
type Header struct {
	Slug   string
	Format int    // -1: not readable
	ID     string // "": none, or not readable
	HasID  bool   // there is a line for the id
	Addr   string
}

// errForeign is for a file that no cdpmux wrote.
var errForeign = errors.New("no wrapper of cdpmux")

// headerBytes hold the whole header, whatever the store is called.
const headerBytes = 400

const marker = "cdpmux-wrapper-format:"

var (
	headLine   = regexp.MustCompile(`(?m)^# Auto-generated browser-use wrapper for store: ([a-z0-9_-]+)$`)
	formatLine = regexp.MustCompile(`(?m)^# ` + marker + ` ([0-9]{1,9})$`)
	idLine     = regexp.MustCompile(`(?m)^# cdpmux-store-id:(?: ([A-Za-z0-9_-]{1,64})$)?`)
	addrLine   = regexp.MustCompile(`(?m)^# cdpmux-proxy: (\S+)$`)
)

// readHeader returns errForeign for a file that is not a wrapper.
func readHeader(path string) (Header, error) {
	head, err := readHead(path)
	if err != nil {
		return Header{}, err
	}
	m := headLine.FindSubmatch(head)
	if m == nil {
		return Header{}, errForeign
	}
	h := Header{Slug: string(m[1]), Format: -1}
	if m := formatLine.FindSubmatch(head); m != nil {
		h.Format, _ = strconv.Atoi(string(m[1]))
	}
	if m := idLine.FindSubmatch(head); m != nil {
		h.ID, h.HasID = string(m[1]), true
	}
	if m := addrLine.FindSubmatch(head); m != nil {
		h.Addr = string(m[1])
	}
	return h, nil
}

// readHead reads the first bytes of a regular file; a link is nobody's script.
func readHead(path string) ([]byte, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errForeign
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headerBytes)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:n], err
}

// isWrapper reports whether a program is a wrapper or guard of any cdpmux.
func isWrapper(path string) bool {
	head, err := readHead(path)
	return err == nil && bytes.Contains(head, []byte(marker))
}
