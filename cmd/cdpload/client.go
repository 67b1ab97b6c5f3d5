package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// client is one connection that drives a page of its own.
type client struct {
	*wire
	target, session string
	suffix          []byte // what each message of its session ends with

	// the command that it repeats: text between its ids
	before, after []byte
	burst         int  // events that each reply follows
	each          bool // a write for each command

	next int64  // id
	open int    // commands without a reply
	sent []slot // by id, modulo its length
	now  time.Time

	counts
}

// slot is a command that waits for its reply; id 0 is none.
type slot struct {
	id int64
	at time.Time
}

// counts is what came of a client's commands.
type counts struct {
	Replies    int64 `json:"replies"`
	Events     int64 `json:"events"`
	Bytes      int64 `json:"bytes"`      // of the texts received
	Errors     int64 `json:"errors"`     // replies that are errors
	Lost       int64 `json:"lost"`       // replies and events that did not come
	Duplicates int64 `json:"duplicates"` // replies and events too many
	Foreign    int64 `json:"foreign"`    // messages of a session that is not the client's

	samples []time.Duration // from sending a command to its reply
}

func (c *counts) add(o *counts) {
	c.Replies += o.Replies
	c.Events += o.Events
	c.Bytes += o.Bytes
	c.Errors += o.Errors
	c.Lost += o.Lost
	c.Duplicates += o.Duplicates
	c.Foreign += o.Foreign
	c.samples = append(c.samples, o.samples...)
}

// read tells a reply (its id) from an event (its method), and whether it is of
// the client's session. Browsers write the id or the method first and the
// session last; what a proxy has written anew is decoded.
func (c *client) read(m message) (id int64, method string, own bool) {
	own = c.suffix != nil && bytes.HasSuffix(m.tail, c.suffix)
	if rest, ok := bytes.CutPrefix(m.head, []byte(`{"id":`)); ok && (own || c.suffix == nil) {
		for _, b := range rest {
			if b < '0' || b > '9' {
				break
			}
			id = 10*id + int64(b-'0')
		}
		return id, "", own
	}
	if rest, ok := bytes.CutPrefix(m.head, []byte(`{"method":"`)); ok && own {
		if string(rest[:len(bursts)]) == bursts {
			return 0, bursts, true
		}
	}
	var text struct {
		ID                int64
		Method, SessionID string
	}
	if m.size <= readBuffer {
		_ = json.Unmarshal(m.head, &text) // what does not decode is nobody's
	}
	return text.ID, text.Method, text.SessionID == c.session
}

// bursts is the event that burst makes.
const bursts = "Runtime.bindingCalled"

// repeat prepares the command for send: it is to be up bytes long.
func (c *client) repeat(name, args string, up int) {
	c.before = []byte(`{"id":`)
	start, end := `,"method":"Runtime.evaluate","params":{"expression":"`+name+`(`+args, `)"},"sessionId":"`+c.session+`"}`
	pad := max(0, up-len(c.before)-len("1000")-len(start)-len(end))
	c.after = append(append([]byte(start), bytes.Repeat([]byte{' '}, pad)...), end...)
}

// send puts one more command on its way, which flush sends.
func (c *client) send() error {
	for c.next++; c.sent[c.next%int64(len(c.sent))].id != 0; c.next++ { // an old one waits there
	}
	c.sent[c.next%int64(len(c.sent))] = slot{c.next, c.now}
	var space [256]byte
	text := strconv.AppendInt(append(space[:0], c.before...), c.next, 10)
	c.put(opText, append(text, c.after...))
	c.open++
	if c.each {
		return c.flush()
	}
	return nil
}

// pipeline keeps ahead commands under way until the time is over, then waits
// for the last replies.
func (c *client) pipeline(ahead int, until time.Time) error {
	_ = c.conn.SetDeadline(until.Add(callWait))
	size := 1024
	for size < 2*ahead {
		size *= 2
	}
	c.sent = make([]slot, size)
	c.now = time.Now()
	for range ahead {
		if err := c.send(); err != nil {
			return err
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	return c.collect(until, true)
}

// collect reads replies until none is open, each followed by a new command
// until the time is over if again is set. What is missing then is lost.
func (c *client) collect(until time.Time, again bool) error {
	defer func() {
		c.Lost += int64(c.open) + max(0, int64(c.burst)*c.Replies-c.Events)
		c.Duplicates += max(0, c.Events-int64(c.burst)*c.Replies)
	}()
	for c.open > 0 {
		waited := c.idle()
		if waited {
			if err := c.flush(); err != nil {
				return err
			}
		}
		m, err := c.wire.next()
		if err != nil {
			return err
		}
		if waited {
			c.now = time.Now()
		}
		if c.take(m) && again && c.now.Before(until) {
			if err := c.send(); err != nil {
				return err
			}
		}
	}
	return nil
}

// take counts a message and reports whether it answers a command.
func (c *client) take(m message) bool {
	c.Bytes += int64(m.size)
	id, method, own := c.read(m)
	switch s := &c.sent[id%int64(len(c.sent))]; {
	case !own:
		c.Foreign++
	case method == bursts:
		c.Events++
	case id == 0: // an event of the page's own
	case id > c.next:
		c.Foreign++
	case s.id != id:
		c.Duplicates++
	default:
		c.samples = append(c.samples, c.now.Sub(s.at))
		s.id = 0
		c.open--
		c.Replies++
		if bytes.Contains(m.head[:min(64, len(m.head))], []byte(`"error":`)) {
			c.Errors++
		}
		return true
	}
	return false
}

// stall asks for more than any socket holds, reads nothing until the time is
// over, and then everything.
func (c *client) stall(ctx context.Context, count int, until time.Time) error {
	c.sent = make([]slot, 1024)
	c.now = time.Now()
	for range count {
		if err := c.send(); err != nil {
			return err
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	wait(ctx, until)
	_ = c.conn.SetDeadline(time.Now().Add(callWait))
	return c.collect(until, false)
}

// wait ends at that time, or with ctx.
func wait(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
