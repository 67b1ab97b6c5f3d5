package lifecycle

import (
	"fmt"
	"os"
	"strconv"
)

// MachineDir makes and returns the directory for what all stores of this
// machine and user share: /run/cdpmux, or /tmp/cdpmux-<uid> where that cannot
// be written. Its path is short, as Chrome's TMPDIR below it must be.
func MachineDir() (string, error) {
	const run = "/run/cdpmux"
	if privateDir(run) == nil && CheckWritable(run) == nil {
		return run, nil
	}
	dir := "/tmp/cdpmux-" + strconv.Itoa(os.Getuid())
	if err := privateDir(dir); err != nil {
		return "", fmt.Errorf("directory for what the stores of this machine share: %w", err)
	}
	return dir, nil
}

// CheckWritable tries whether dir takes new files.
func CheckWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".cdpmux-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}
