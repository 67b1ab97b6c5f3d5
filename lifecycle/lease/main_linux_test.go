package lease

import "os"

func init() {
	if path := os.Getenv("LEASE_TEST_JOURNAL"); path != "" {
		work(path)
	}
}
