package routing

import (
	"reflect"
	"strings"
	"testing"
)

// Both ways to read a large reply find the same, or scanLarge leaves it.
func TestScanLarge(t *testing.T) {
	const id = "0123456789ABCDEF0123456789ABCDEF"
	end := `,"sessionId":"` + id + `"}`
	big := strings.Repeat("x", largeReply)
	for text, taken := range map[string]bool{
		`{"id":7,"result":{"data":"` + big + `"}` + end:                                    true,
		`{"id":1000000000,"result":{"a":["` + big + `",{"sessionId":"` + id + `"}]}` + end: true,
		`{"id":7,"result":{"data":"` + big + `"}}`:                                         false, // of no session
		`{"id":7,"error":{"message":"` + big + `"}` + end:                                  false,
		`{"id":7,"result":{"data":"` + big + `","sessionId":"` + id + `"}}`:                false, // that of the result
		`{"id":7,"result":{"data":"` + big + `,\"sessionId\":\"` + id + `"}}`:              false, // in a string
		`{"id":7,"result":{"data":"` + big + `"},"sessionId":"` + id[:31] + `"}`:           false,
		`{"id":99999999999,"result":{"data":"` + big + `"}` + end:                          false,
		`{"id":,"result":{"data":"` + big + `"}` + end:                                     false,
		`{"method":"Page.screencastFrame","params":{"data":"` + big + `"}` + end:           false,
		`{"sessionId":"` + id + `","id":7,"result":{"data":"` + big + `"}}`:                false,
	} {
		var fast, slow Envelope
		if got := scanLarge([]byte(text), &fast); got != taken {
			t.Errorf("%.60s … %s: taken %v", text, text[len(text)-60:], got)
		}
		if taken && (!scanAll([]byte(text), &slow) || !reflect.DeepEqual(fast, slow)) {
			t.Errorf("%.60s …: %+v, want %+v", text, fast, slow)
		}
	}
}
