package routing

// filter is a Target.TargetFilter: the first entry of a target's type, or of
// any type, decides.
type filter []filterEntry

type filterEntry struct {
	kind    string // "" is any type
	exclude bool
}

// defaultFilter is what Chrome takes when none is given.
var defaultFilter = filter{{kind: typeBrowser, exclude: true}, {kind: typeTab, exclude: true}, {}}

// allows reports whether targets of a type pass.
func (f filter) allows(kind string) bool {
	for _, e := range f {
		if e.kind == "" || e.kind == kind {
			return !e.exclude
		}
	}
	return false
}

// filterParam reads the filter of params.
func filterParam(params []byte) (f filter, present, ok bool) {
	s, present := Member(params, "filter")
	if !present {
		return defaultFilter, false, true
	}
	raw := s.Of(params)
	if raw[0] != '[' {
		return nil, true, false
	}
	f = filter{}
	for v := range elements(raw) {
		e, ok := readFilterEntry(v)
		if !ok {
			return nil, true, false
		}
		f = append(f, e)
	}
	return f, true, true
}

func readFilterEntry(raw []byte) (e filterEntry, ok bool) {
	if raw[0] != '{' {
		return e, false
	}
	if s, present := Member(raw, "type"); present {
		kind, ok := Unquote(s.Of(raw))
		if !ok {
			return e, false
		}
		e.kind = string(kind)
	}
	e.exclude, _, ok = boolParam(raw, "exclude")
	return e, ok
}
