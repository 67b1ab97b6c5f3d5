package download

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxPath is Linux's PATH_MAX, in bytes.
const maxPath = 4096

// clientDir opens the directory that a client asked for, if it may have files
// there.
func (s *Store) clientDir(dir string) (*os.File, error) {
	if len(dir) > maxPath {
		return nil, fmt.Errorf("its path has %d bytes, and %d is what systems take", len(dir), maxPath)
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%q is no absolute path", dir)
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part == ".." {
			return nil, fmt.Errorf("%q has a .. in it", dir)
		}
	}
	// The longest root decides: what is a symbolic link below a shorter one may
	// be the way to a longer one.
	var base, below string
	for _, root := range s.roots {
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue // gone since the start
		}
		for _, form := range []string{root, real} {
			rel, err := filepath.Rel(form, dir)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			if rel == "." {
				rel = ""
			}
			if base == "" || len(rel) < len(below) {
				base, below = real, rel
			}
		}
	}
	if base == "" {
		return nil, fmt.Errorf("%q is not under --download-roots (%s)", dir, strings.Join(s.roots, ", "))
	}
	return s.openBelow(base, below)
}

// openBelow opens the directory at a path below base, "" for base itself. It follows no symbolic
// link on the way, makes what is missing, and accepts only a directory of ours.
func (s *Store) openBelow(base, below string) (_ *os.File, err error) {
	dir, err := os.OpenFile(base, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			dir.Close()
		}
	}()
	at := base
	for part := range strings.SplitSeq(below, "/") {
		if part == "" {
			break // base itself
		}
		if s.reserved(dir, part) {
			return nil, fmt.Errorf("%q is the store's own", filepath.Join(at, part))
		}
		next, err := openDir(dir, part)
		if errors.Is(err, fs.ErrNotExist) {
			if at != base && !ours(dir) {
				return nil, fmt.Errorf("%q is not there, and %q, where it would be made, belongs to another user", part, at)
			}
			if err := unix.Mkdirat(int(dir.Fd()), part, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, fmt.Errorf("%q cannot be made in %q: %w", part, at, err)
			}
			next, err = openDir(dir, part)
		}
		at = filepath.Join(at, part)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", at, err)
		}
		dir.Close()
		dir = next
	}
	if !ours(dir) {
		return nil, fmt.Errorf("%q belongs to another user", at)
	}
	return dir, nil
}

// reserved reports whether a name in an open directory is of the store's own
// house: staging, journal and archive, hidden ones for what may follow.
func (s *Store) reserved(dir *os.File, name string) bool {
	if name[0] != '.' && !strings.EqualFold(name, prevName) {
		return false
	}
	store, err := os.Stat(s.dir)
	return err == nil && isDir(dir, store)
}

var (
	errSymlink = errors.New("a symbolic link, which is not followed")
	errNotDir  = errors.New("not a directory")
)

// openDir opens a directory in another one.
func openDir(in *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(in.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		return os.NewFile(uintptr(fd), name), nil
	}
	var st unix.Stat_t
	if unix.Fstatat(int(in.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			return nil, errSymlink
		case unix.S_IFDIR:
		default:
			return nil, errNotDir
		}
	}
	return nil, err
}

// ours reports whether an open directory belongs to the user we run as.
func ours(dir *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(dir.Fd()), &st) == nil && int(st.Uid) == os.Geteuid()
}

// isDir reports whether an open directory is the one that fi describes.
func isDir(dir *os.File, fi fs.FileInfo) bool {
	own, err := dir.Stat()
	return err == nil && os.SameFile(own, fi)
}

// putUnique puts the file at src into dir under the first free one of name,
// "name (1)", … and returns that name. Nothing is ever overwritten.
func putUnique(src string, dir *os.File, name string) (string, error) {
	for n := 0; ; n++ {
		free := numbered(name, n)
		if strings.EqualFold(free, prevName) {
			continue // taken, though it may not be there yet
		}
		if err := put(src, dir, free); !errors.Is(err, fs.ErrExist) {
			return free, err
		}
	}
}

// put gives the file at src a second name in dir; on another file system, or
// one without hard links, a copy. A name that exists is fs.ErrExist.
func put(src string, dir *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, src, int(dir.Fd()), name, 0)
	switch {
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EMLINK):
		return duplicate(src, dir, name)
	}
	return err
}

// duplicate copies the file at src, with its mode as a link would have it, to a
// new file in dir. When it fails it leaves nothing behind.
func duplicate(src string, dir *os.File, name string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(fi.Mode().Perm()))
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, unix.Unlinkat(int(dir.Fd()), name, 0))
	}
	return nil
}
