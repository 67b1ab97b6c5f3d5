package routing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"cdpmux/routing"
)

// row is one block of testdata/commands.txt; the head of that file says what
// its fields are.
type row struct {
	source string // of text, as the file has it
	text   string
	chrome string
	reads  string
	ours   string
}

func (r row) want() string {
	switch {
	case r.ours != "":
		return r.ours
	case r.reads != "":
		return r.reads
	}
	return r.chrome
}

func readCommands(t testing.TB) []row {
	t.Helper()
	file, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for n, line := range strings.Split(string(file), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		field, value, _ := strings.Cut(line, " ")
		value = strings.TrimLeft(value, " ")
		if field == "text" {
			rows = append(rows, row{source: value, text: expand(t, value)})
			continue
		}
		last := &rows[len(rows)-1]
		switch field {
		case "chrome":
			last.chrome = value
		case "reads":
			last.reads = value
		case "ours":
			last.ours = value
		default:
			t.Fatalf("commands.txt:%d: what is a %q?", n+1, field)
		}
	}
	return rows
}

// expand turns `"a" + 3*"b"` into abbb.
func expand(t testing.TB, source string) string {
	t.Helper()
	var text strings.Builder
	for term := range strings.SplitSeq(source, " + ") {
		times, literal, found := strings.Cut(term, "*")
		n, err := strconv.Atoi(times)
		if !found || err != nil {
			n, literal = 1, term
		}
		part, err := strconv.Unquote(literal)
		if err != nil {
			t.Fatalf("%s: %v", term, err)
		}
		text.WriteString(strings.Repeat(part, n))
	}
	return text.String()
}

// outcome is what ScanCommand made of a text, in the words of commands.txt.
func outcome(env *routing.Envelope, refusal *routing.Refusal) string {
	if refusal != nil {
		id := ""
		if refusal.HasID {
			id = fmt.Sprintf(`"id":%d,`, refusal.ID)
		}
		return fmt.Sprintf(`{%s"error":{"code":%d,"message":"%s"}}`, id, refusal.Code, refusal.Message)
	}
	reads := fmt.Sprintf("id=%d method=%+q", env.ID, env.Method)
	for _, field := range []struct {
		name  string
		value []byte
	}{
		{"sessionId", env.Session},
		{"params.targetId", env.TargetID},
		{"params.sessionId", env.ChildID},
		{"params.browserContextId", env.ContextID},
	} {
		if field.value != nil {
			reads += fmt.Sprintf(" %s=%+q", field.name, field.value)
		}
	}
	return reads
}

// withoutCBOR cuts off the positions that count bytes of Chrome's own encoding.
func withoutCBOR(reply string) string {
	return regexp.MustCompile(`(CBOR: .*) at position \d+`).ReplaceAllString(reply, "$1")
}

func TestScanCommand(t *testing.T) {
	for _, row := range readCommands(t) {
		t.Run(row.source, func(t *testing.T) {
			var env routing.Envelope
			refusal := routing.ScanCommand([]byte(row.text), &env)
			if row.ours != "" && refusal == nil {
				t.Error("we may be stricter than the browser, but not read otherwise")
			}
			got := outcome(&env, refusal)
			if withoutCBOR(got) != withoutCBOR(row.want()) {
				t.Errorf("ScanCommand(%s)\n got %s\nwant %s", row.source, got, row.want())
			}
		})
	}
}

func TestScanCommandSpans(t *testing.T) {
	text := []byte("{ \"params\" : {\"targetId\":\"T\"} ,\n\"\\u0069d\" : 7.0 ,\"session\\u0049d\": \"S\" , \"method\":\"X.y\"}")
	var env routing.Envelope
	if refusal := routing.ScanCommand(text, &env); refusal != nil {
		t.Fatal(refusal)
	}
	for name, span := range map[string]struct {
		span routing.Span
		want string
	}{
		"id":     {env.IDSpan, `7.0`},
		"params": {env.Params, `{"targetId":"T"}`},
		"member": {env.Member, `"session\u0049d": "S"`},
	} {
		if got := string(span.span.Of(text)); got != span.want {
			t.Errorf("%s is %s, want %s", name, got, span.want)
		}
	}
	if env.Error.Present() || env.Result.Present() {
		t.Error("a command has no error and no result")
	}
}

func TestScanCommandForgetsTheLastText(t *testing.T) {
	env := routing.Envelope{TargetID: []byte("T"), Session: []byte("S"), Method: []byte("M"), Params: routing.Span{Start: 1, End: 2}}
	routing.ScanCommand([]byte(`{"id":7,"method":"X.y"}`), &env)
	if got := outcome(&env, nil); got != `id=7 method="X.y"` || env.Params.Present() {
		t.Errorf("read %s, params %v", got, env.Params)
	}
}

func TestScanCommandAllocatesNothing(t *testing.T) {
	var env routing.Envelope
	for _, line := range traffic(t, "client.txt") {
		allocs := testing.AllocsPerRun(100, func() {
			if refusal := routing.ScanCommand(line, &env); refusal != nil {
				t.Fatal(refusal)
			}
		})
		if allocs > 0 {
			t.Errorf("%v allocations for %s", allocs, line)
		}
	}
}

// traffic returns the messages of a recorded session, one a line.
func traffic(t testing.TB, name string) [][]byte {
	t.Helper()
	file, err := os.ReadFile("testdata/traffic/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(file), []byte("\n"))
}

// Whatever ScanCommand takes, encoding/json reads alike, and what it calls bad
// JSON is bad to encoding/json too, or beyond a limit of Chrome's.
func FuzzScanCommand(f *testing.F) {
	for _, row := range readCommands(f) {
		f.Add([]byte(row.text))
	}
	for _, line := range traffic(f, "client.txt") {
		f.Add(line)
	}
	limit := regexp.MustCompile("stack limit|invalid number|invalid string")
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		var env routing.Envelope
		refusal := routing.ScanCommand(text, &env)
		if !bytes.Equal(text, before) {
			t.Fatal("the text was changed")
		}
		if !json.Valid(text) {
			return // control characters and \v, which encoding/json refuses
		}
		if refusal != nil {
			if strings.HasPrefix(refusal.Message, "JSON:") && !limit.MatchString(refusal.Message) {
				t.Fatalf("refused sound JSON: %s", refusal.Message)
			}
			if strings.Contains(refusal.Message, "invalid string") && utf8.Valid(text) {
				t.Fatalf("refused sound UTF-8: %s", refusal.Message)
			}
			return
		}
		object, repeated := decode(text)
		if repeated {
			t.Fatal("took a member twice")
		}
		agree(t, text, &env, object)

		var params map[string]json.RawMessage // stays empty when params is an array
		_ = json.Unmarshal(object["params"], &params)
		for name, got := range map[string][]byte{
			"targetId": env.TargetID, "sessionId": env.ChildID, "browserContextId": env.ContextID,
		} {
			if want := stringOf(params[name]); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("params.%s is %q, want %q", name, got, want)
			}
			member, ok := routing.Member(env.Params.Of(text), name)
			if raw := params[name]; ok != (raw != nil) || string(member.Of(env.Params.Of(text))) != string(raw) {
				t.Errorf("Member finds %v %v for %s: %s", member, ok, name, raw)
			}
		}
	})
}

// decode reads the members of an object, and whether one stands twice.
func decode(text []byte) (object map[string]json.RawMessage, repeated bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if brace, err := d.Token(); err != nil || brace != json.Delim('{') {
		return nil, false
	}
	object = map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		_, again := object[name.(string)]
		repeated = repeated || again
		object[name.(string)] = value
	}
	return object, repeated
}

// stringOf returns the string that raw is; nil when it is none.
func stringOf(raw json.RawMessage) []byte {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return nil
	}
	return append([]byte{}, *s...)
}

// agree checks an envelope against the members that encoding/json found.
func agree(t *testing.T, text []byte, env *routing.Envelope, object map[string]json.RawMessage) {
	t.Helper()
	if got := env.IDSpan.Of(text); string(got) != string(object["id"]) {
		t.Errorf("id is %s, want %s", got, object["id"])
	}
	var id float64
	if raw := object["id"]; raw != nil && (json.Unmarshal(raw, &id) != nil || id != float64(env.ID)) {
		t.Errorf("id is %d, want %s", env.ID, raw)
	}
	if want := stringOf(object["method"]); !bytes.Equal(env.Method, want) {
		t.Errorf("method is %q, want %q", env.Method, want)
	}
	if want := stringOf(object["sessionId"]); !bytes.Equal(env.Session, want) {
		t.Errorf("session is %q, want %q", env.Session, want)
	}
	if raw := object["sessionId"]; env.Member.Present() != (raw != nil) || !bytes.HasSuffix(env.Member.Of(text), raw) {
		t.Errorf("member is %s, want …%s", env.Member.Of(text), raw)
	}
	if got := env.Params.Of(text); string(got) != string(object["params"]) {
		t.Errorf("params is %s, want %s", got, object["params"])
	}
}

func BenchmarkScanCommand(b *testing.B) {
	lines := map[string][]byte{
		"evaluate":    traffic(b, "client.txt")[10],
		"1MiB script": []byte(`{"id":7,"method":"Runtime.evaluate","params":{"expression":"` + strings.Repeat("a+", 1<<19) + `"}}`),
	}
	for name, line := range lines {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			var env routing.Envelope
			for b.Loop() {
				if refusal := routing.ScanCommand(line, &env); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}
