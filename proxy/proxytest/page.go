package proxytest

import (
	"encoding/json"
)

// Page is a tab of a client with a flat session on it.
type Page struct {
	TargetID string
	Session  string
	c        *Client
}

// NewPage creates a tab and attaches to it.
func (c *Client) NewPage(url string) Page {
	c.helper()
	target := member(c.Call("", "Target.createTarget", map[string]any{"url": url}), "targetId")
	return c.Attach(target)
}

// Attach makes a flat session on a target.
func (c *Client) Attach(target string) Page {
	c.helper()
	result := c.Call("", "Target.attachToTarget", map[string]any{"targetId": target, "flatten": true})
	return Page{TargetID: target, Session: member(result, "sessionId"), c: c}
}

// On is the page behind a session that is there already.
func (c *Client) On(target, session string) Page {
	return Page{TargetID: target, Session: session, c: c}
}

// Call is [Client.Call] on the page's session.
func (p Page) Call(method string, params any) json.RawMessage {
	p.c.helper()
	return p.c.Call(p.Session, method, params)
}

// Eval evaluates an expression, awaiting a promise, and returns its value. An
// exception is fatal.
func (p Page) Eval(expression string) json.RawMessage {
	p.c.helper()
	raw := p.Call("Runtime.evaluate", map[string]any{
		"expression": expression, "returnByValue": true, "awaitPromise": true,
	})
	var reply struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil || reply.Exception != nil {
		p.c.fatalf("evaluate %s: %s", expression, head(raw))
	}
	return reply.Result.Value
}

// Navigate loads a URL and waits for its load event.
func (p Page) Navigate(url string) {
	p.c.helper()
	p.Call("Page.enable", nil)
	from := len(p.c.Transcript())
	raw := p.Call("Page.navigate", map[string]any{"url": url})
	if text := member(raw, "errorText"); text != "" {
		p.c.fatalf("navigate to %s: %s", url, text)
	}
	loader := member(raw, "loaderId")
	if loader == "" { // within the document
		return
	}
	committed := false
	loaded := p.c.until(func() bool {
		for ; from < len(p.c.messages); from++ {
			switch m := p.c.messages[from]; {
			case m.Is(p.Session, "Page.frameNavigated"):
				var event struct{ Frame struct{ LoaderID string } }
				committed = committed || m.Into(&event) == nil && event.Frame.LoaderID == loader
			case m.Is(p.Session, "Page.loadEventFired"):
				if committed {
					return true
				}
			}
		}
		return false
	})
	if !loaded {
		p.c.fatalf("navigate to %s: no load event", url)
	}
}

// Screenshot returns the page as a PNG.
func (p Page) Screenshot() []byte {
	p.c.helper()
	var shot struct{ Data []byte }
	if err := json.Unmarshal(p.Call("Page.captureScreenshot", nil), &shot); err != nil {
		p.c.fatalf("screenshot: %v", err)
	}
	return shot.Data
}

// Close closes the tab.
func (p Page) Close() {
	p.c.helper()
	p.c.Call("", "Target.closeTarget", map[string]any{"targetId": p.TargetID})
}
