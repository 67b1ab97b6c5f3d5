package routing

import (
	"reflect"
	"testing"
)

// Both ways to read a message find the same, or scanEnds leaves it.
func TestScanEnds(t *testing.T) {
	const id = "0123456789ABCDEF0123456789ABCDEF"
	const end = `,"sessionId":"` + id + `"}`
	for text, taken := range map[string]bool{
		`{"id":7,"result":{"data":"x"}` + end:                                    true,
		`{"id":7,"result":{}` + end:                                              true,
		`{"id":1000000000,"result":{"a":["x",{"sessionId":"` + id + `"}]}` + end: true,
		`{"method":"Page.loadEventFired","params":{"timestamp":1.5}` + end:       true,
		`{"method":"Inspector.detached","params":{"reason":"}\"` + `"}` + end:    true,

		`{"id":7,"result":{"data":"x"}}`:                                                            false, // of no session
		`{"id":7,"error":{"message":"x"}` + end:                                                     false,
		`{"id":7,"result":{"data":"x","sessionId":"` + id + `"}}`:                                   false, // that of the result
		`{"id":7,"result":{"data":"x,\"sessionId\":\"` + id + `"}}`:                                 false, // in a string
		`{"id":7,"result":{"data":"x"},"sessionId":"` + id[:31] + `"}`:                              false,
		`{"id":7,"result":{"data":"x"},"sessionId":"` + id[:30] + `\n"}`:                            false,
		`{"id":99999999999,"result":{"data":"x"}` + end:                                             false,
		`{"id":,"result":{"data":"x"}` + end:                                                        false,
		`{"sessionId":"` + id + `","id":7,"result":{"data":"x"}}`:                                   false,
		`{"method":"Target.detachedFromTarget","params":{"sessionId":"` + id + `"}}`:                false,
		`{"method":"Target.detachedFromTarget","params":{"targetId":"A","sessionId":"` + id + `"}}`: false,
		`{"method":"A\u0041","params":{}` + end:                                                     false,
		`{"method":"A"` + end:                                                                       false,
		`{"method":` + end:                                                                          false,
		end[1:]:                                                                                     false,
		`{` + end[1:]:                                                                               false,
	} {
		var fast, slow Envelope
		if got := scanEnds([]byte(text), &fast); got != taken {
			t.Errorf("%s: taken %v", text, got)
		}
		if taken && (!scanAll([]byte(text), &slow) || !reflect.DeepEqual(fast, slow)) {
			t.Errorf("%s: %+v, want %+v", text, fast, slow)
		}
	}
}
