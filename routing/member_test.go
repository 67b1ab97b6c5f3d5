package routing_test

import (
	"testing"

	"cdpmux/routing"
)

func TestMember(t *testing.T) {
	for _, test := range []struct {
		name, object, want string // want is empty where there is no targetId
	}{
		{"string", `{"url":"u","targetId":"T"}`, `"T"`},
		{"object", `{"targetId":{"a":"}"},"b":1}`, `{"a":"}"}`},
		{"null", `{"targetId":null}`, `null`},
		{"last of several", `{"targetId":"A","targetId":"B"}`, `"B"`},
		{"escaped name", `{"targetId":"A","t\u0061rgetId":"B"}`, `"B"`},
		{"spaces that Chrome knows", "\f{\v\"targetId\"\f:\t7 }", `7`},
		{"other case", `{"targetID":"T"}`, ``},
		{"deeper", `{"a":{"targetId":"T"},"b":[{"targetId":"T"}]}`, ``},
		{"no members", `{}`, ``},
		{"array", `["targetId","T"]`, ``},
		{"no params", `null`, ``},
		{"absent", ``, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			span, ok := routing.Member([]byte(test.object), "targetId")
			if got := string(span.Of([]byte(test.object))); got != test.want || ok != (test.want != "") {
				t.Errorf("Member(%s) = %s, %v, want %s", test.object, got, ok, test.want)
			}
		})
	}
}

func TestMemberAllocatesNothing(t *testing.T) {
	object := []byte(`{"targetId":"T","expression":"a\nb","flatten":true}`)
	if allocs := testing.AllocsPerRun(100, func() { routing.Member(object, "flatten") }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
