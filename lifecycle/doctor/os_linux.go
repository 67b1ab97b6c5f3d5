package doctor

import (
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// inNamespace starts a program in a user namespace of its own.
func inNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
}

// listenerAt is the pid of the process that listens at a TCP address; 0 when
// that cannot be seen, as of other users'.
func listenerAt(addr string) int {
	host, text, err := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	if err != nil || port == 0 {
		return 0
	}
	var inodes []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(table)
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line) // sl local remote state queues timer retransmits uid timeout inode
			if len(f) > 9 && f[3] == "0A" && listens(f[1], host, port) {
				inodes = append(inodes, "socket:["+f[9]+"]")
			}
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, _ := os.Readlink(link); slices.Contains(inodes, target) {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			return pid
		}
	}
	return 0
}

// listens reports whether a local address of the kernel's table, hex words in
// the byte order of the machine, is host and port, or every host's.
func listens(local, host string, port int) bool {
	words, number, _ := strings.Cut(local, ":")
	if p, err := strconv.ParseUint(number, 16, 16); err != nil || int(p) != port {
		return false
	}
	ip, err := hex.DecodeString(words)
	if err != nil {
		return false
	}
	for word := range slices.Chunk(ip, 4) { // all Linux machines that run Chrome are little-endian
		slices.Reverse(word)
	}
	want := net.ParseIP(host)
	return net.IP(ip).IsUnspecified() || want == nil || want.Equal(net.IP(ip))
}
