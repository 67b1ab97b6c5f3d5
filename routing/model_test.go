package routing

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// model is as much of Chrome as the histories need: targets, flat sessions and
// the order of its events. What it says waits in said until it is delivered.
type model struct {
	said      []string
	hub       string // the session that auto-attaches at browser level
	targets   map[string]*modelTarget
	sessions  map[string]*modelSession
	made      map[string]*modelSession // every session there ever was
	owners    map[string]string        // every target there ever was → who made it
	n         int
	forgetful bool // a closeTarget is answered and not done
}

type modelTarget struct {
	id, tab, owner, url, opener, kind string
	crashed, paused                   bool
}

type modelSession struct {
	id, parent, target string // parent "" is the connection

}

func newModel() *model {
	return &model{targets: map[string]*modelTarget{}, sessions: map[string]*modelSession{}, made: map[string]*modelSession{}, owners: map[string]string{}}
}

func (c *model) say(session, format string, args ...any) {
	text := "{" + fmt.Sprintf(format, args...)
	if session != "" {
		text += `,"sessionId":"` + session + `"`
	}
	c.said = append(c.said, text+"}")
}

func (c *model) id(kind string) string { c.n++; return fmt.Sprintf("%s%d-", kind, c.n) }

func (c *model) owner(target string) string {
	if o, ok := c.owners[target]; ok {
		return o
	}
	return "?"
}

func pick[V any](m map[string]V, n int) string {
	ids := slices.Sorted(maps.Keys(m))
	if len(ids) == 0 {
		return "none"
	}
	return ids[n%len(ids)]
}

// anyTarget is a target that there is or was, whoever's.
func (c *model) anyTarget(n int) string { return pick(c.owners, n) }

// anySession is a session of a page that there is or was, whoever's.
func (c *model) anySession(n int) string {
	pages := maps.Clone(c.made)
	maps.DeleteFunc(pages, func(_ string, s *modelSession) bool { return s.parent == "" })
	return pick(pages, n)
}

func (c *model) page(n int) *modelTarget {
	pages := maps.Clone(c.targets)
	maps.DeleteFunc(pages, func(_ string, t *modelTarget) bool { return t.kind != "page" })
	return pages[pick(pages, n)]
}

func (t *modelTarget) info(attached bool) string {
	extra := ""
	if t.opener != "" {
		extra = `,"openerId":"` + t.opener + `"`
	}
	if t.kind == "tab" {
		extra = `,"embedderData":{"tabActive":true}`
	}
	return fmt.Sprintf(`{"targetId":"%s","type":"%s","title":"","url":"%s","attached":%t%s}`, t.id, t.kind, t.url, attached, extra)
}

func (c *model) make(owner, url, opener string) *modelTarget {
	tab := &modelTarget{id: c.id("T"), owner: owner, kind: "tab"}
	page := &modelTarget{id: c.id("T"), owner: owner, kind: "page", url: url, opener: opener, tab: tab.id}
	for _, t := range []*modelTarget{tab, page} {
		c.targets[t.id], c.owners[t.id] = t, owner
		c.say("", `"method":"Target.targetCreated","params":{"targetInfo":%s}`, t.info(false))
	}
	if c.hub != "" {
		page.paused = true
		c.attach(c.hub, page, true)
	}
	return page
}

// attach makes a session on a target and announces it.
func (c *model) attach(parent string, t *modelTarget, waiting bool) *modelSession {
	s := &modelSession{id: c.id("S"), parent: parent, target: t.id}
	c.sessions[s.id], c.made[s.id] = s, s
	c.say(parent, `"method":"Target.attachedToTarget","params":{"sessionId":"%s","targetInfo":%s,"waitingForDebugger":%t}`, s.id, t.info(true), waiting)
	return s
}

func (c *model) human() { c.make("", "human", "") }

func (c *model) popup(n int) {
	if o := c.page(n); o != nil {
		c.make(o.owner, "", o.id)
	}
}

func (c *model) closesItself(n int) {
	if t := c.page(n); t != nil {
		c.close(t)
	}
}

func (c *model) crash(n int) {
	t := c.page(n)
	if t == nil {
		return
	}
	t.crashed = true
	for _, id := range c.on(t.id) {
		c.say(id, `"method":"Inspector.targetCrashed","params":{}`)
	}
	c.say("", `"method":"Target.targetCrashed","params":{"targetId":"%s","status":"crashed","errorCode":5}`, t.id)
}

// autoAttach is Target.setAutoAttach: the hub's at browser level, the eye's on
// a tab.
func (c *model) autoAttach(s *modelSession, on, hub bool) {
	t := c.targets[s.target]
	switch {
	case t != nil && t.kind == "tab" && on:
		for _, id := range slices.Sorted(maps.Keys(c.targets)) {
			if p := c.targets[id]; p.tab == t.id {
				c.attach(s.id, p, false)
			}
		}
	case t != nil:
	case on && hub:
		c.hub = s.id
		for _, id := range slices.Sorted(maps.Keys(c.targets)) {
			if p := c.targets[id]; p.kind == "page" && !slices.ContainsFunc(c.on(id), func(o string) bool { return c.sessions[o].parent == s.id }) {
				c.attach(s.id, p, false)
			}
		}
	default:
		c.hub = ""
		for _, id := range slices.Sorted(maps.Keys(c.sessions)) {
			if o := c.sessions[id]; o != nil && o.parent == s.id {
				c.drop(id)
				c.say(s.id, `"method":"Target.detachedFromTarget","params":{"sessionId":"%s","targetId":"%s"}`, id, o.target)
			}
		}
	}
}

// on lists the sessions on a target.
func (c *model) on(target string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(c.sessions)) {
		if c.sessions[id].target == target {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *model) close(t *modelTarget) {
	for _, of := range []string{t.id, t.tab} {
		for _, id := range c.on(of) {
			if s := c.sessions[id]; s != nil {
				c.drop(id)
				c.say(s.parent, `"method":"Target.detachedFromTarget","params":{"sessionId":"%s","targetId":"%s"}`, id, of)
			}
		}
		delete(c.targets, of)
		c.say("", `"method":"Target.targetDestroyed","params":{"targetId":"%s"}`, of)
	}
}

// cut ends the proxy's connection; Chrome may end with it.
func (c *model) cut(dies bool) {
	c.said, c.hub = nil, ""
	clear(c.sessions)
	if dies {
		clear(c.targets)
	}
}

// drop ends a session and, in silence, those below it.
func (c *model) drop(id string) {
	delete(c.sessions, id)
	for _, ch := range slices.Sorted(maps.Keys(c.sessions)) {
		if s := c.sessions[ch]; s != nil && s.parent == id {
			c.drop(ch)
		}
	}
}

// hear carries out one command of the proxy.
func (c *model) hear(t *testing.T, text []byte) {
	var m struct {
		ID                int
		Method, SessionID string
		Params            struct {
			TargetID, SessionID, URL, Expression string
			AutoAttach                           bool
			Filter                               []struct{ Type string }
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("Chrome hears %s: %v", text, err)
	}
	reply := func(body string, args ...any) { c.say(m.SessionID, `"id":%d,%s`, m.ID, fmt.Sprintf(body, args...)) }
	if m.SessionID != "" && c.sessions[m.SessionID] == nil {
		c.say("", `"id":%d,"error":{"code":-32001,"message":"%s"}`, m.ID, textNoSession)
		return
	}
	target := c.targets[m.Params.TargetID]
	if m.Params.TargetID != "" && target == nil {
		reply(`"error":{"code":-32602,"message":"No target with given id found"}`)
		return
	}
	switch m.Method {
	case "Target.attachToBrowserTarget":
		s := c.attach("", &modelTarget{id: c.id("B"), kind: "browser"}, false)
		reply(`"result":{"sessionId":"%s"}`, s.id)
	case "Target.createTarget":
		reply(`"result":{"targetId":"%s"}`, c.make(m.Params.URL[len("by:"):], m.Params.URL, "").id)
	case "Target.attachToTarget":
		c.say("", `"method":"Target.targetInfoChanged","params":{"targetInfo":%s}`, target.info(true))
		s := c.attach(m.SessionID, target, false)
		reply(`"result":{"sessionId":"%s"}`, s.id)
	case "Target.setAutoAttach":
		c.autoAttach(c.sessions[m.SessionID], m.Params.AutoAttach, len(m.Params.Filter) > 2)
		reply(`"result":{}`)
	case "Runtime.runIfWaitingForDebugger":
		if t := c.targets[c.sessions[m.SessionID].target]; t != nil {
			t.paused = false
		}
		reply(`"result":{}`)
	case "Target.detachFromTarget":
		s := c.sessions[m.Params.SessionID]
		if s == nil || s.parent != m.SessionID {
			reply(`"error":{"code":-32602,"message":"No session with given id"}`)
			return
		}
		c.drop(s.id)
		c.say(s.parent, `"method":"Target.detachedFromTarget","params":{"sessionId":"%s","targetId":"%s"}`, s.id, s.target)
		reply(`"result":{}`)
	case "Target.closeTarget":
		reply(`"result":{"success":true}`)
		if target.kind == "tab" {
			for _, p := range c.targets {
				if p.tab == target.id {
					target = p
				}
			}
		}
		if !c.forgetful {
			c.close(target)
		}
	case "Target.getTargets":
		infos := ""
		for _, id := range slices.Sorted(maps.Keys(c.targets)) {
			if t := c.targets[id]; t.kind == "page" {
				if infos != "" {
					infos += ","
				}
				infos += t.info(len(c.on(id)) > 0)
			}
		}
		reply(`"result":{"targetInfos":[%s]}`, infos)
	case "Runtime.evaluate":
		if t := c.targets[c.sessions[m.SessionID].target]; m.Params.Expression != "never" && t != nil && !t.crashed {
			reply(`"result":{"result":{"type":"string","value":"%s"}}`, m.Params.Expression)
		}
	default: // set-up of the proxy's own
		reply(`"result":{}`)
	}
}
