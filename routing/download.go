package routing

import (
	"maps"
	"slices"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/mailru/easyjson"
)

// Downloads are the proxy's. In Chrome one behaviour counts for the whole
// browser, the one set last, and ends with the session that set it. So the
// proxy's own root sets the only one, for good: every file goes to a staging
// directory under its guid, and the proxy moves it to where it belongs when it
// is complete. What clients set is kept here and never sent.

// Download is a file that Chrome fetched, as the caller is told of it.
type Download struct {
	GUID     string
	Name     string // as Chrome suggests it
	URL      string
	Client   string // whose it is; "" is nobody's, or the HTTP owner's
	Behavior string // what that client asked for: allow, allowAndName, or "", which is the store's directory alone
	Dir      string // and the directory that it gave
}

// download is a file under way.
type download struct {
	Download
	owner   *client
	pending bool     // the owner is not known yet; what is told of it waits
	told    [][]byte // that: params of its events
	tab     *target  // where it came from: not closed for the sake of the cap
	context string   // the tab's; "" is the shared one
	setting downloadSetting
	hearers []*session // on which its owner hears of it
	dropped bool       // somebody asked Chrome for its end, and it may come
	denied  bool       // that was us: nobody wants it even when it is complete
	last    []byte     // params of its last event
	saving  bool       // complete in Chrome, being moved
	parked  []parked   // completed, as pages hear it: waits for the file
}

// downloadSetting is what a client asked for in one browser context. As in
// Chrome it ends with the session that asked.
type downloadSetting struct {
	by            *session
	behavior, dir string
}

type parked struct {
	session *session
	msg     *Message
	env     Envelope
}

const (
	behaviorAllow        = "allow"
	behaviorAllowAndName = "allowAndName"
	behaviorDeny         = "deny"

	stateCompleted = "completed"
	stateCanceled  = "canceled"

	textNoPath     = "downloadPath not provided"
	textNoContext  = "Failed to find browser context for id "
	textNoDownload = "No download item found for the given GUID"
	textNotTop     = "Command can only be executed on top-level targets"
)

// pin makes every download of a browser context, "" being the one that all
// share, come to the staging directory.
func (r *Router) pin(context string) {
	if r.staging == "" {
		return
	}
	on := true
	r.ask(nil, browser.CommandSetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: behaviorAllowAndName, BrowserContextID: contextID(context), DownloadPath: r.staging, EventsEnabled: &on,
	}, ignore)
}

// setDownloadBehavior is virtual in both its forms. The Page form acts on the
// page's context and says nothing of events.
func (r *Router) setDownloadBehavior(c *conn, s *session, m *Message, env *Envelope) {
	ofPage := string(env.Method) == commandPageDownload
	if s.root && ofPage {
		r.reply(s, env.ID, errorBody(codeMethod, "'"+commandPageDownload+"' wasn't found"))
		return
	}
	params := object(m, env)
	behavior, given, ok1 := textParam(params, "behavior")
	dir, dirGiven, ok2 := textParam(params, "downloadPath")
	events, _, ok3 := boolParam(params, "eventsEnabled")
	context, contextGiven, ok4 := textParam(params, "browserContextId")
	if !s.hasDownloads() || !given || !ok1 || !ok2 || !ofPage && !(ok3 && ok4) {
		r.forward(c, s, m, env) // Chrome refuses it, in its own words
		return
	}
	if ofPage && s.target != nil {
		if context = s.target.info.BrowserContextID; s.target.info.Type == typeIframe {
			r.reply(s, env.ID, errorBody(codeServer, textNotTop))
			return
		}
	}
	switch {
	case !ofPage && contextGiven && !c.client.uses(context, r.defaultContext):
		r.reply(s, env.ID, errorBody(codeParams, textNoContext+context))
		return
	case !dirGiven && (behavior == behaviorAllow || behavior == behaviorAllowAndName):
		r.reply(s, env.ID, errorBody(codeParams, textNoPath))
		return
	}
	if c.client.downloads == nil {
		c.client.downloads = map[string]downloadSetting{}
	}
	c.client.downloads[r.ownContext(context)] = downloadSetting{s, behavior, dir}
	if !ofPage {
		s.downloadsOn = events
	}
	r.reply(s, env.ID, `"result":{}`)
}

// ownContext is a context's id, "" for the one that all share.
func (r *Router) ownContext(id string) string {
	if id == r.defaultContext {
		return ""
	}
	return id
}

// hasDownloads reports whether Chrome knows of downloads on such a session:
// tabs and workers have no Browser domain, and Page without that command.
func (s *session) hasDownloads() bool {
	return s.target == nil || s.root || s.target.info.Type == typePage || s.target.info.Type == typeIframe
}

// cancelDownload passes for a client's own; another's is unknown to it.
func (r *Router) cancelDownload(c *conn, s *session, m *Message, env *Envelope) {
	guid, given, ok := textParam(object(m, env), "guid")
	if given && ok && s.hasDownloads() {
		d := r.downloads[guid]
		switch {
		case d != nil && d.owner == c.client:
			d.dropped = true
		case c.client.fetched[guid]:
		case env.ContextID != nil && !c.client.uses(string(env.ContextID), r.defaultContext):
			r.reply(s, env.ID, errorBody(codeParams, textNoContext+string(env.ContextID)))
			return
		default:
			r.reply(s, env.ID, errorBody(codeParams, textNoDownload))
			return
		}
	}
	r.forward(c, s, m, env)
}

// downloadBegins takes Browser.downloadWillBegin. The frame is a target's own,
// or one in a page that the eye heard of it from, just before.
func (r *Router) downloadBegins(params []byte) {
	e := readDownload(params)
	t := r.targets[e.FrameID]
	if t == nil {
		t = r.origins[e.GUID]
	}
	delete(r.origins, e.GUID)
	d := &download{Download: Download{GUID: e.GUID, Name: e.SuggestedFilename, URL: e.URL}}
	r.downloads[d.GUID] = d
	d.last = slices.Clone(params)
	if t != nil {
		d.tab = r.tabOf(t)
		d.tab.downloading++
		d.context = r.ownContext(d.tab.info.BrowserContextID)
		if d.pending = t.pending; d.pending {
			d.told = append(d.told, d.last)
			t.downloads = append(t.downloads, d)
			return
		}
		d.owner = t.owner
	}
	r.giveDownload(d)
}

// tabOf is the page that a frame is in.
func (r *Router) tabOf(t *target) *target {
	for up := r.targets[t.info.ParentID]; up != nil; up = r.targets[t.info.ParentID] {
		t = up
	}
	return t
}

// giveDownload is the beginning of a download whose owner is known, or known
// to be nobody.
func (r *Router) giveDownload(d *download) {
	if cl := d.owner; cl != nil {
		d.Client = cl.id
		if set := cl.downloads[d.context]; r.lives(set.by) {
			d.setting = set
		}
		for _, c := range cl.conns {
			for _, s := range c.sessions {
				if s.downloadsOn {
					d.hearers = append(d.hearers, s)
				}
			}
		}
	}
	r.tellDownload(d, eventDownloadBegins, string(d.last))
	if d.setting.behavior == behaviorDeny {
		d.dropped, d.denied = true, true
		r.ask(nil, browser.CommandCancelDownload, browser.CancelDownloadParams{GUID: d.GUID, BrowserContextID: contextID(d.context)}, ignore)
	}
}

// ownDownloads gives the downloads that waited for a target's owner to him.
func (r *Router) ownDownloads(t *target) {
	waited := t.downloads
	t.downloads = nil
	for _, d := range waited {
		told := d.told
		d.pending, d.told, d.owner = false, nil, t.owner
		r.giveDownload(d)
		for _, params := range told[1:] {
			r.downloadMoves(params)
		}
	}
}

// downloadMoves takes Browser.downloadProgress.
func (r *Router) downloadMoves(params []byte) {
	e := readDownload(params)
	d := r.downloads[e.GUID]
	if d == nil || d.saving {
		return // begun before this connection; or over
	}
	if d.pending {
		d.told = append(d.told, slices.Clone(params))
		return
	}
	d.last = slices.Clone(params)
	switch {
	case e.State == stateCanceled:
		if !d.dropped {
			r.out = append(r.out, Action{Kind: Aborted, Download: &d.Download})
			r.pin(d.context) // another program may have denied it
		}
		r.endDownload(d, string(params))
	case e.State != stateCompleted:
		r.tellDownload(d, eventDownloadMoves, string(params))
	case e.FilePath != r.staging+"/"+d.GUID: // somebody else set another place
		r.note("a download went to " + e.FilePath + ": another program set Chrome's download behaviour; setting it again")
		r.pin(d.context)
		r.endDownload(d, string(params))
	case d.denied: // too late for Chrome, not for us
		r.out = append(r.out, Action{Kind: Discard, Download: &d.Download})
		r.endDownload(d, canceled(params))
	default:
		d.saving = true
		// As in Chrome, what counted at its beginning does, though the session
		// that set it is gone. A client that left is not there to look.
		if d.owner != nil && len(d.owner.conns) > 0 && (d.setting.behavior == behaviorAllow || d.setting.behavior == behaviorAllowAndName) {
			d.Behavior, d.Dir = d.setting.behavior, d.setting.dir
		}
		r.out = append(r.out, Action{Kind: Save, Download: &d.Download})
	}
}

// Saved says what became of a [Save]: the path at which its client finds the
// file, or an error.
func (r *Router) Saved(now time.Time, guid, path string, failed bool, out []Action) []Action {
	r.begin(now, out)
	d := r.downloads[guid]
	switch {
	case d == nil || !d.saving: // its browser is gone
	case failed:
		r.endDownload(d, canceled(d.last))
	default:
		v, _ := Member(d.last, "filePath")
		text := append(slices.Clone(d.last[:v.Start]), AppendQuoted(nil, []byte(path))...)
		r.endDownload(d, string(append(text, d.last[v.End:]...)))
	}
	return r.out
}

// endDownload tells the last of a download.
func (r *Router) endDownload(d *download, params string) {
	delete(r.downloads, d.GUID)
	if d.tab != nil {
		d.tab.downloading--
	}
	if d.owner != nil {
		if d.owner.fetched == nil {
			d.owner.fetched = map[string]bool{}
		}
		d.owner.fetched[d.GUID] = true
	}
	end := readDownload([]byte(params)).State
	for i := range d.parked {
		p := &d.parked[i]
		if !r.lives(p.session) {
			continue
		}
		if v, ok := Member(p.env.Params.Of(p.msg.Text()), "state"); ok && end != stateCompleted {
			p.msg.Replace(&p.env, Span{p.env.Params.Start + v.Start, p.env.Params.Start + v.End}, []byte(`"`+end+`"`))
		}
		r.deliver(p.session, p.msg, &p.env)
	}
	r.tellDownload(d, eventDownloadMoves, params)
}

// tellDownload sends an event of a download to where its owner hears of it.
func (r *Router) tellDownload(d *download, event, params string) {
	for _, s := range d.hearers {
		if r.lives(s) && s.downloadsOn {
			r.emit(s, `"method":"`, event, `","params":`, params)
		}
	}
}

// park keeps what a page hears of a completed download until the file is
// where it belongs.
func (r *Router) park(s *session, m *Message, env *Envelope) bool {
	e := readDownload(env.Params.Of(m.Text()))
	d := r.downloads[e.GUID]
	if d == nil || e.State != stateCompleted {
		return false
	}
	d.parked = append(d.parked, parked{s, m, *env})
	return true
}

// abandonDownloads tells that downloads end with their browser. A file that is
// being moved arrives, but there will be no session to tell that on.
func (r *Router) abandonDownloads() {
	for _, guid := range slices.Sorted(maps.Keys(r.downloads)) {
		if d := r.downloads[guid]; !d.pending {
			r.tellDownload(d, eventDownloadMoves, canceled(d.last))
		}
	}
	for _, cl := range r.clients {
		cl.fetched = nil
	}
}

// canceled makes the params of a canceled event of those of another.
func canceled(params []byte) string {
	total := "0"
	if v, ok := Member(params, "totalBytes"); ok {
		total = string(v.Of(params))
	}
	return `{"guid":"` + readDownload(params).GUID + `","totalBytes":` + total + `,"receivedBytes":0,"state":"` + stateCanceled + `"}`
}

func readDownload(params []byte) (e downloadEvent) {
	// What does not decode names nothing.
	_ = easyjson.Unmarshal(params, &e)
	return e
}

// lives reports whether a session is there still.
func (r *Router) lives(s *session) bool { return s != nil && r.sessions[s.id] == s }
