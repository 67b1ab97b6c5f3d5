package routing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"cdpmux/routing"
)

func TestScan(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string // as describe says; empty for a text that is refused
	}{
		{"reply", `{"id":7,"result":{"a":1}}`, `id=7 result={"a":1}`},
		{"reply of a session", `{"id":7,"result":{},"sessionId":"S"}`, `id=7 result={} session=S member="sessionId":"S"`},
		{"error", `{"id":7,"error":{"code":-32601,"message":"'X.y' wasn't found"}}`, `id=7 error={"code":-32601,"message":"'X.y' wasn't found"}`},
		{"error without id", `{"error":{"code":-32700}}`, `error={"code":-32700}`},
		{"event", `{"method":"Page.loadEventFired","params":{"timestamp":1.5},"sessionId":"S"}`,
			`method=Page.loadEventFired params={"timestamp":1.5} session=S member="sessionId":"S"`},
		{"smallest id", `{"id":-2147483648,"result":{}}`, `id=-2147483648 result={}`},
		{"empty session", `{"id":7,"sessionId":""}`, `id=7 member="sessionId":""`},
		{"any order, any space", " {\n\"sessionId\" : \"S\" ,\t\"result\":{ } , \"id\" : 7 } ", `id=7 result={ } session=S member="sessionId" : "S"`},
		{"only the top level counts", `{"method":"X.y","params":{"id":8,"method":"Z","sessionId":"T","result":[{"error":1}]}}`,
			`method=X.y params={"id":8,"method":"Z","sessionId":"T","result":[{"error":1}]}`},
		{"brackets and quotes in strings", `{"id":7,"result":{"a":"}]\"\\","b":"\\\\\"{["}}`, `id=7 result={"a":"}]\"\\","b":"\\\\\"{["}`},
		{"members that routing has no use for", `{"x":null,"id":7,"y":[[]],"z":"s","result":true}`, `id=7 result=true`},
		{"no members", `{}`, `nothing`},

		{"empty", ``, ``},
		{"array", `[]`, ``},
		{"string", `"id"`, ``},
		{"cut off", `{"id":7,"result":{}`, ``},
		{"cut off in a value", `{"id":7,"result":{"a":"b`, ``},
		{"cut off after a name", `{"id"`, ``},
		{"cut off after a colon", `{"id":`, ``},
		{"more after the end", `{"id":7}{}`, ``},
		{"no comma", `{"id":7 "result":{}}`, ``},
		{"comma at the end", `{"id":7,}`, ``},
		{"name is no string", `{id:7}`, ``},
		{"no colon", `{"id" 7}`, ``},
		{"id is no integer", `{"id":7.5}`, ``},
		{"id is a string", `{"id":"7"}`, ``},
		{"id is too large", `{"id":2147483648}`, ``},
		{"method is no string", `{"method":7}`, ``},
		{"session is no string", `{"id":7,"sessionId":null}`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			var env routing.Envelope
			got := ""
			if routing.Scan([]byte(test.text), &env) {
				got = describe(test.text, &env)
			}
			if got != test.want {
				t.Errorf("Scan(%s)\n got %s\nwant %s", test.text, got, test.want)
			}
		})
	}
}

// describe tells what an envelope holds.
func describe(text string, env *routing.Envelope) string {
	var fields []string
	if env.IDSpan.Present() {
		fields = append(fields, fmt.Sprintf("id=%d", env.ID))
	}
	if env.Method != nil {
		fields = append(fields, "method="+string(env.Method))
	}
	for name, span := range map[string]routing.Span{"params": env.Params, "error": env.Error, "result": env.Result} {
		if span.Present() { // a message has one of the three
			fields = append(fields, name+"="+string(span.Of([]byte(text))))
		}
	}
	if env.Session != nil {
		fields = append(fields, "session="+string(env.Session))
	}
	if env.Member.Present() {
		fields = append(fields, "member="+string(env.Member.Of([]byte(text))))
	}
	if fields == nil {
		return "nothing"
	}
	return strings.Join(fields, " ")
}

func TestScanAllocatesNothing(t *testing.T) {
	var env routing.Envelope
	for _, line := range traffic(t, "browser.txt") {
		allocs := testing.AllocsPerRun(100, func() {
			if !routing.Scan(line, &env) {
				t.Fatalf("refused %s", line)
			}
		})
		if allocs > 0 {
			t.Errorf("%v allocations for %s", allocs, line)
		}
	}
}

// Scan takes every object that encoding/json takes, if its id and strings are
// what Chrome would write, and finds the same members in it.
func FuzzScan(f *testing.F) {
	for _, line := range traffic(f, "browser.txt") {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var env routing.Envelope
		took := routing.Scan(text, &env)
		object, repeated := decode(text)
		switch {
		case !json.Valid(text) || object == nil || repeated || !utf8.Valid(text) || len(object) > 3:
			return // no message that Chrome would write
		case bytes.Contains(text, []byte(`\u00`)):
			return // perhaps in the name of a member, which Chrome never escapes
		}
		var id int32
		sound := object["id"] == nil || json.Unmarshal(object["id"], &id) == nil && string(object["id"]) != "null"
		for _, name := range []string{"method", "sessionId"} {
			sound = sound && (object[name] == nil || stringOf(object[name]) != nil)
		}
		if took != sound {
			t.Fatalf("Scan says %v", took)
		}
		if !took {
			return
		}
		agree(t, text, &env, object)
		if got := env.Error.Of(text); string(got) != string(object["error"]) {
			t.Errorf("error is %s, want %s", got, object["error"])
		}
		if got := env.Result.Of(text); string(got) != string(object["result"]) {
			t.Errorf("result is %s, want %s", got, object["result"])
		}
	})
}

func BenchmarkScan(b *testing.B) {
	const session = `"sessionId":"DBFD7CF5A85B93286A353D27E7D99A55"`
	for _, message := range []struct{ name, text string }{
		{"event", `{"method":"Network.dataReceived","params":{"requestId":"633B3AF20C7B265551D0CB2500A7AD3D","timestamp":1267.252136,"dataLength":41},` + session + `}`},
		{"64KiB DOM", `{"id":7,"result":{"nodes":[` + strings.Repeat(`{"nodeId":1,"nodeName":"DIV","attributes":["class","a b"]},`, 1080) + `{}]},` + session + `}`},
		{"1MiB screenshot", `{"id":7,"result":{"data":"` + strings.Repeat("iVBORw0K", 1<<17) + `"},` + session + `}`},
	} {
		b.Run(message.name, func(b *testing.B) {
			text := []byte(message.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var env routing.Envelope
			for b.Loop() {
				if !routing.Scan(text, &env) {
					b.Fatal("refused")
				}
			}
		})
	}
}
