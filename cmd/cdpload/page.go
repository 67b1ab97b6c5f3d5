package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// prelude teaches a real page what the fake browser's pages know: big(n) is a
// string of n bytes, burst(n, size) is n, after n events.
const prelude = `globalThis.big = n => "x".repeat(n); globalThis.burst = (n, size) => { const p = big(size); for (let i = 0; i < n; i++) cdpload(p); return n }`

// openPage makes the client's page.
func (c *client) openPage() error {
	var made struct{ TargetID string }
	if err := c.call("", "Target.createTarget", `{"url":"about:blank","newWindow":true}`, &made); err != nil {
		return err
	}
	c.target = made.TargetID
	var attached struct{ SessionID string }
	if err := c.call("", "Target.attachToTarget", `{"targetId":"`+c.target+`","flatten":true}`, &attached); err != nil {
		return err
	}
	c.session = attached.SessionID
	c.suffix = []byte(`"sessionId":"` + c.session + `"}`)
	quoted, _ := json.Marshal(prelude)
	for _, command := range [][2]string{
		{"Runtime.enable", `{}`},
		{"Runtime.addBinding", `{"name":"cdpload"}`},
		{"Runtime.evaluate", `{"expression":` + string(quoted) + `}`},
	} {
		if err := c.call(c.session, command[0], command[1], nil); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) closePage() error {
	return c.call("", "Target.closeTarget", `{"targetId":"`+c.target+`"}`, nil)
}

// callWait bounds what is not measured.
const callWait = 30 * time.Second

// call sends one command and waits for its reply; whatever else comes is not
// looked at. result may be nil.
func (c *client) call(session, method, params string, result any) error {
	_ = c.conn.SetDeadline(time.Now().Add(callWait))
	c.next++
	text := fmt.Sprintf(`{"id":%d,"method":%q,"params":%s`, c.next, method, params)
	if session != "" {
		text += `,"sessionId":"` + session + `"`
	}
	c.put(opText, []byte(text+"}"))
	if err := c.flush(); err != nil {
		return err
	}
	for {
		m, err := c.wire.next()
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		if id, _, _ := c.read(m); id != c.next {
			continue
		}
		var reply struct {
			Result json.RawMessage
			Error  json.RawMessage
		}
		switch {
		case m.size > readBuffer: // a screenshot
		case json.Unmarshal(m.head, &reply) != nil || reply.Error != nil:
			return fmt.Errorf("%s: %s", method, m.head)
		case result != nil:
			return json.Unmarshal(reply.Result, result)
		}
		return nil
	}
}

// await reads until an event of the client's session comes.
func (c *client) await(method string) error {
	for {
		m, err := c.wire.next()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", method, err)
		}
		if id, name, own := c.read(m); id == 0 && own && name == method {
			return nil
		}
	}
}

// tabs opens, loads, pictures and closes pages, one after the other.
func (c *client) tabs(page string, until time.Time) error {
	quoted, _ := json.Marshal(page)
	for began := time.Now(); began.Before(until); began = time.Now() {
		if err := c.openPage(); err != nil {
			return err
		}
		if err := c.call(c.session, "Page.enable", `{}`, nil); err != nil {
			return err
		}
		if err := c.call(c.session, "Page.navigate", `{"url":`+string(quoted)+`}`, nil); err != nil {
			return err
		}
		if err := c.await("Page.loadEventFired"); err != nil {
			return err
		}
		if err := c.call(c.session, "Page.captureScreenshot", `{}`, nil); err != nil {
			return err
		}
		if err := c.closePage(); err != nil {
			return err
		}
		c.Replies++
		c.samples = append(c.samples, time.Since(began))
	}
	return nil
}
