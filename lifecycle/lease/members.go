package lease

import (
	"bytes"
	"encoding/json"
	"io"
)

// member is a name with its value, as it stands in an object.
type member struct {
	name  string
	value json.RawMessage
}

// members lists what stands in a JSON object, in its order and with doubles.
// ok is false when text is anything else.
func members(text []byte) (list []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		t, err := d.Token()
		name, isText := t.(string)
		if err != nil || !isText {
			return nil, false
		}
		m := member{name: name}
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		list = append(list, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return list, err == io.EOF
}
