package wrapper

import (
	"fmt"
	"slices"
)

// Result is what Wipe did to one script.
type Result struct {
	Path   string
	Action string // one of the constants below
	Why    string
}

// What becomes of a script.
const (
	Kept      = "kept"
	Rewritten = "rewritten"
	Deleted   = "deleted"
	Failed    = "failed" // should have gone and did not
)

// Wipe brings scripts of an older format up to date and deletes those whose
// store is not known. Without any known store nothing counts as an orphan: a
// wrong list is likelier than no stores. What is newer, not ours or not readable
// is kept. render writes the script of a header's store anew; when it fails, the
// old script goes, since it may do what is wrong by now.
func (b Bin) Wipe(known []string, render func(Header) error) ([]Result, error) {
	list, err := b.List()
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, entry := range list {
		results = append(results, b.judge(entry, known, render))
	}
	return results, nil
}

func (b Bin) judge(e Entry, known []string, render func(Header) error) Result {
	kept := func(why string) Result { return Result{e.Path, Kept, why} }
	older := e.Format < Format
	switch {
	case e.Foreign():
		return kept("not written by cdpmux")
	case e.Err != nil:
		return kept(e.Err.Error())
	case e.Format < 0:
		return kept("its format cannot be read")
	case e.Format > Format:
		return kept("of a newer cdpmux")
	case e.HasID && e.ID == "":
		return kept("its store id cannot be read")
	case !e.HasID && !older:
		return kept("it names no store id")
	}
	if !slices.Contains(known, e.ID) {
		if len(known) == 0 {
			return kept("no store is known, so none can be missed")
		}
		return b.drop(e, "its store is not known")
	}
	if !older {
		return kept("up to date")
	}
	if err := render(e.Header); err != nil {
		return b.drop(e, fmt.Sprintf("format %d is out of date, and it cannot be written anew: %v", e.Format, err))
	}
	return Result{e.Path, Rewritten, fmt.Sprintf("format %d is now %d", e.Format, Format)}
}

func (b Bin) drop(e Entry, why string) Result {
	if err := b.delete(e.Path); err != nil {
		return Result{e.Path, Failed, fmt.Sprintf("%s, but: %v", why, err)}
	}
	return Result{e.Path, Deleted, why}
}
