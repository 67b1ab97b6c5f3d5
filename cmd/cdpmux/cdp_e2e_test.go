package main_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"

	"cdpmux/proxy/proxytest"
)

// params are the parameters of a command.
type params = map[string]any

// everything is the target filter that lets all types through.
var everything = []params{{}}

// dial connects client id to the proxy.
func (m *mux) dial(t *testing.T, id string) *proxytest.Client {
	t.Helper()
	return proxytest.Dial(t, m.ws("/client-"+id))
}

// dialBrowser connects to the Chromium behind, past the proxy.
func (m *mux) dialBrowser(t *testing.T) *proxytest.Client {
	t.Helper()
	return proxytest.Dial(t, m.browserURL(t))
}

// target is one entry of Target.getTargets or of /json/list.
type target struct {
	ID    string // of /json/list
	Type  string
	URL   string
	WS    string `json:"webSocketDebuggerUrl"`
	Title string

	TargetID         string // of Target.getTargets
	BrowserContextID string
}

// targets asks for the targets that a client sees; filter may be nil, Chrome's default.
func targets(t *testing.T, c *proxytest.Client, filter []params) []target {
	t.Helper()
	ask := params{}
	if filter != nil {
		ask["filter"] = filter
	}
	var reply struct{ TargetInfos []target }
	decode(t, c.Call("", "Target.getTargets", ask), &reply)
	return reply.TargetInfos
}

// pages are the target ids of the tabs that a client sees, sorted.
func pages(t *testing.T, c *proxytest.Client) []string {
	t.Helper()
	var ids []string
	for _, each := range targets(t, c, nil) {
		if each.Type == "page" {
			ids = append(ids, each.TargetID)
		}
	}
	slices.Sort(ids)
	return ids
}

// list reads a /json/list and returns the ids in it, sorted.
func list(t *testing.T, url string) []string {
	t.Helper()
	var entries []target
	decode(t, get(t, url), &entries)
	ids := []string{}
	for _, each := range entries {
		ids = append(ids, each.ID)
	}
	slices.Sort(ids)
	return ids
}

// get reads a page of the proxy's HTTP side that must be there.
func get(t *testing.T, url string) []byte {
	t.Helper()
	status, body := request(t, http.MethodGet, url)
	if status != http.StatusOK {
		t.Fatalf("GET %s: want 200, got %d %s", url, status, body)
	}
	return body
}

func request(t *testing.T, method, url string) (status int, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true // no connection is kept past the test
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp.StatusCode, body
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
}

// text decodes a JSON string.
func text(t *testing.T, raw json.RawMessage) (s string) {
	t.Helper()
	decode(t, raw, &s)
	return s
}

// quotedID matches the ids of targets, sessions, frames, loaders and contexts.
var quotedID = regexp.MustCompile(`"([0-9A-F]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"`)

// idsSeen are all ids in what a client received.
func idsSeen(c *proxytest.Client) map[string]bool {
	seen := map[string]bool{}
	for _, message := range c.Transcript() {
		for _, match := range quotedID.FindAllSubmatch(message.Raw, -1) {
			seen[string(match[1])] = true
		}
	}
	return seen
}

// mustBeStrangers checks that two clients have not heard of one single thing
// of each other: no id came to both but that of the default context.
func mustBeStrangers(t *testing.T, a, b *proxytest.Client) {
	t.Helper()
	context := targets(t, b, nil)[0].BrowserContextID
	ofB := idsSeen(b)
	for _, message := range a.Transcript() {
		for _, match := range quotedID.FindAllSubmatch(message.Raw, -1) {
			if id := string(match[1]); ofB[id] && id != context {
				t.Errorf("id %s came to both clients: want it at one only; at one as %s", id, message)
				return
			}
		}
	}
}

// mustBeAlive checks that a page's session still answers.
func mustBeAlive(t *testing.T, who string, p proxytest.Page) {
	t.Helper()
	if got := string(p.Eval("6*7")); got != "42" {
		t.Errorf("%s evaluates 6*7: want 42, got %s", who, got)
	}
}

// mustShowSomething checks that a PNG is a picture of a page: some size, and more than one colour.
func mustShowSomething(t *testing.T, shot []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatalf("screenshot of %d bytes: %v", len(shot), err)
	}
	size := picture.Bounds()
	if size.Dx() < 100 || size.Dy() < 100 {
		t.Errorf("screenshot: want at least 100x100 pixels, got %v", size)
	}
	if oneColour(picture) {
		t.Errorf("screenshot of %v: want a picture, got one colour", size)
	}
}

func oneColour(picture image.Image) bool {
	size := picture.Bounds()
	first := picture.At(size.Min.X, size.Min.Y)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			if picture.At(x, y) != first {
				return false
			}
		}
	}
	return true
}

// together runs the functions at the same time and waits for all.
func together(run ...func()) {
	var all sync.WaitGroup
	for _, each := range run {
		all.Go(each)
	}
	all.Wait()
}
