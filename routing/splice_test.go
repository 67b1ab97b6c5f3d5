package routing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cdpmux/routing"
)

func TestSplice(t *testing.T) {
	setID := func(id int32) func(*routing.Message, *routing.Envelope) {
		return func(m *routing.Message, env *routing.Envelope) { m.SetID(env, id) }
	}
	setSession := func(session string) func(*routing.Message, *routing.Envelope) {
		return func(m *routing.Message, env *routing.Envelope) { m.SetSession(env, session) }
	}
	for _, test := range []struct {
		name, text string
		splice     func(*routing.Message, *routing.Envelope)
		want       string
	}{
		{"id of the same length", `{"id":1000000007,"result":{}}`, setID(1234567890), `{"id":1234567890,"result":{}}`},
		{"shorter id", `{"id":1000000007,"result":{}}`, setID(-5), `{"id":-5        ,"result":{}}`},
		{"longer id", `{"id":7,"method":"X.y"}`, setID(1000000007), `{"id":1000000007,"method":"X.y"}`},
		{"longer id, last member", `{"method":"X.y","id":7}`, setID(1000000007), `{"method":"X.y","id":1000000007}`},
		{"id with spaces about it", `{"id" : 7 ,"method":"X.y"}`, setID(10), `{"id" : 10 ,"method":"X.y"}`},
		{"id spelled at length", `{"id":7.00000000000000000000,"method":"X.y"}`, setID(10), `{"id":10                    ,"method":"X.y"}`},
		{"least id", `{"id":7,"method":"X.y"}`, setID(-2147483648), `{"id":-2147483648,"method":"X.y"}`},

		{"session for a message without", `{"id":7,"method":"X.y"}`, setSession("S"), `{"sessionId":"S","id":7,"method":"X.y"}`},
		{"session, spaces first", " { \"id\":7,\"method\":\"X.y\"}", setSession("S"), " {\"sessionId\":\"S\", \"id\":7,\"method\":\"X.y\"}"},
		{"session for an empty one", `{"id":7,"sessionId":"","method":"X.y"}`, setSession("S"), `{"id":7,"sessionId":"S","method":"X.y"}`},
		{"other session", `{"id":7,"result":{},"sessionId":"AAAA"}`, setSession("S"), `{"id":7,"result":{},"sessionId":"S"}`},
		{"other session, escaped name", `{"id":7,"method":"X.y","session\u0049d" : "A"}`, setSession("S"), `{"id":7,"method":"X.y","sessionId":"S"}`},

		{"no session, as Chrome has it", `{"id":7,"result":{},"sessionId":"S"}`, setSession(""), `{"id":7,"result":{}}`},
		{"no session, first member", `{"sessionId":"S","id":7,"method":"X.y"}`, setSession(""), `{"id":7,"method":"X.y"}`},
		{"no session, in the middle", `{"id":7,"sessionId":"S","method":"X.y"}`, setSession(""), `{"id":7,"method":"X.y"}`},
		{"no session, spaces about it", "{\"id\":7, \"sessionId\" : \"S\"\v, \"method\":\"X.y\"}", setSession(""), `{"id":7,  "method":"X.y"}`},
		{"no session, last, spaces about it", `{"id":7,"method":"X.y" , "sessionId":"S" }`, setSession(""), `{"id":7,"method":"X.y"  }`},
		{"no session where none is", `{"id":7,"method":"X.y"}`, setSession(""), `{"id":7,"method":"X.y"}`},

		{"params, longer", `{"id":7,"method":"X.y","params":{}}`,
			func(m *routing.Message, env *routing.Envelope) { m.Replace(env, env.Params, []byte(`{"a":1}`)) },
			`{"id":7,"method":"X.y","params":{"a":1}}`},
		{"params, shorter", `{"params":{"a":1},"id":7,"method":"X.y"}`,
			func(m *routing.Message, env *routing.Envelope) { m.Replace(env, env.Params, []byte(`{}`)) },
			`{"params":{},"id":7,"method":"X.y"}`},
	} {
		for _, headroom := range []int{routing.Headroom, 3, 0} {
			t.Run(fmt.Sprintf("%s, headroom %d", test.name, headroom), func(t *testing.T) {
				m := message(test.text, headroom)
				var env routing.Envelope
				if refusal := routing.ScanCommand(m.Text(), &env); refusal != nil && !routing.Scan(m.Text(), &env) {
					t.Fatal("no message")
				}
				test.splice(m, &env)
				if got := string(m.Text()); got != test.want {
					t.Errorf("\n got %s\nwant %s", got, test.want)
				}
				checkSpans(t, m, &env)
			})
		}
	}
}

// message returns a message with so much headroom.
func message[T ~string | ~[]byte](text T, headroom int) *routing.Message {
	return &routing.Message{Buf: append(make([]byte, headroom), text...), Start: headroom}
}

// checkSpans compares the spans, kept up to date, with those of a fresh scan.
func checkSpans(t *testing.T, m *routing.Message, env *routing.Envelope) {
	t.Helper()
	var fresh routing.Envelope
	if refusal := routing.ScanCommand(m.Text(), &fresh); refusal != nil && !routing.Scan(m.Text(), &fresh) {
		t.Fatalf("no message any more: %s", m.Text())
	}
	kept := *env
	if kept.Method != nil && !bytes.Equal(kept.Method, fresh.Method) {
		t.Errorf("Method is %q: it aliases what the text was", kept.Method)
	}
	for _, e := range []*routing.Envelope{&kept, &fresh} {
		e.Method, e.Session, e.TargetID, e.ChildID, e.ContextID = nil, nil, nil, nil, nil
	}
	if got, want := fmt.Sprint(kept), fmt.Sprint(fresh); got != want {
		t.Errorf("spans of %s\n got %s\nwant %s", m.Text(), got, want)
	}
}

func TestReplaceInsideAndAround(t *testing.T) {
	const text = `{"id":7,"method":"X.y","params":{"a":1}}`
	var env routing.Envelope
	m := routing.NewMessage(text)
	if refusal := routing.ScanCommand(m.Text(), &env); refusal != nil {
		t.Fatal(refusal)
	}
	value := strings.Index(text, "1}")
	m.Replace(&env, routing.Span{Start: value, End: value + 1}, []byte(`"one"`))
	if got := string(env.Params.Of(m.Text())); got != `{"a":"one"}` {
		t.Errorf("params is %s: a span around the place must grow", got)
	}
	m.Replace(&env, routing.Span{Start: 0, End: len(m.Text())}, []byte(`{}`))
	if env.IDSpan.Present() || env.Params.Present() {
		t.Errorf("%v, %v: a span inside the place must go", env.IDSpan, env.Params)
	}
}

func TestSpliceStaysInPlace(t *testing.T) {
	const reply = `{"id":1000000007,"result":{},"sessionId":"DBFD7CF5A85B93286A353D27E7D99A55"}`
	const command = `{"id":7,"method":"X.y"}`
	for name, splice := range map[string]struct {
		text string
		do   func(*routing.Message, *routing.Envelope)
	}{
		"SetID, shorter":     {reply, func(m *routing.Message, env *routing.Envelope) { m.SetID(env, 7) }},
		"SetID, longer":      {command, func(m *routing.Message, env *routing.Envelope) { m.SetID(env, 1000000007) }},
		"SetSession, insert": {command, func(m *routing.Message, env *routing.Envelope) { m.SetSession(env, "DBFD7CF5A85B93286A353D27E7D99A55") }},
		"SetSession, remove": {reply, func(m *routing.Message, env *routing.Envelope) { m.SetSession(env, "") }},
		"both": {command, func(m *routing.Message, env *routing.Envelope) {
			m.SetID(env, -2147483648)
			m.SetSession(env, "DBFD7CF5A85B93286A353D27E7D99A55")
		}},
	} {
		var scanned, env routing.Envelope
		if !routing.Scan([]byte(splice.text), &scanned) {
			t.Fatalf("%s: no message", name)
		}
		m := routing.NewMessage(splice.text)
		whole := m.Buf
		allocs := testing.AllocsPerRun(100, func() {
			m.Buf, m.Start = whole, routing.Headroom
			copy(m.Text(), splice.text)
			env = scanned
			splice.do(m, &env)
		})
		if allocs > 0 || &m.Buf[0] != &whole[0] {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// After any splices the text is the same object, but for id and sessionId.
func FuzzSplice(f *testing.F) {
	for i, name := range []string{"browser.txt", "client.txt"} {
		for _, line := range traffic(f, name) {
			f.Add(line, int32(1000000007), int32(7), "S", uint8(80*i))
			f.Add(line, int32(0), int32(-2147483648), "", uint8(5))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, first, second int32, session string, headroom uint8) {
		var env routing.Envelope
		before, repeated := decode(text)
		if !json.Valid(text) || before == nil || repeated {
			return
		}
		if routing.ScanCommand(text, &env) != nil && (!routing.Scan(text, &env) || bytes.Contains(text, []byte(`\u00`))) {
			return // no message, or one with a name escaped as Chrome does not
		}
		if quoted, err := json.Marshal(session); err != nil || string(quoted) != `"`+session+`"` {
			return // session ids are plain letters and digits
		}
		m := message(text, int(headroom))
		want := map[string]string{}
		for name, raw := range before {
			want[name] = string(raw)
		}
		for _, id := range []int32{first, second} {
			if env.IDSpan.Present() {
				m.SetID(&env, id)
				want["id"] = fmt.Sprint(id)
			}
			m.SetSession(&env, session)
			want["sessionId"] = `"` + session + `"`
			if session == "" {
				delete(want, "sessionId")
			}
			checkObject(t, m.Text(), want)
			checkSpans(t, m, &env)
			session = strings.Repeat(session, 2)
		}
		m.SetSession(&env, "")
		delete(want, "sessionId")
		checkObject(t, m.Text(), want)
		checkSpans(t, m, &env)
	})
}

func checkObject(t *testing.T, text []byte, want map[string]string) {
	t.Helper()
	object, repeated := decode(text)
	if !json.Valid(text) || repeated || len(object) != len(want) {
		t.Fatalf("became %s", text)
	}
	for name, raw := range want {
		if string(object[name]) != raw {
			t.Errorf("%s became %s in %s, want %s", name, object[name], text, raw)
		}
	}
}

func BenchmarkSetID(b *testing.B) {
	m := routing.NewMessage(`{"id":1000000007,"result":{"data":"` + strings.Repeat("iVBORw0K", 1<<17) + `"}}`)
	var scanned routing.Envelope
	if !routing.Scan(m.Text(), &scanned) {
		b.Fatal("no message")
	}
	b.ReportAllocs()
	for b.Loop() {
		env := scanned
		m.SetID(&env, 7)
	}
}
