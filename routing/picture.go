package routing

import (
	"slices"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
)

// Picture takes a picture of what a tab shows, through the eye, for the
// operator. An Answer with the token follows, within 5 s: Chromium draws no
// hidden tab, and does not say so.
func (r *Router) Picture(now time.Time, id string, token uint64, out []Action) []Action {
	r.begin(now, out)
	if r.absent(token) {
		return r.out
	}
	t := r.targets[id]
	if t == nil || t.owner == nil || !t.isTab() {
		r.out = append(r.out, Action{Kind: Answer, Token: token, Result: Result{Err: "No such target id: " + id}})
		return r.out
	}
	i := slices.IndexFunc(t.sessions, func(s *session) bool { return s.eye })
	if i < 0 {
		r.out = append(r.out, Action{Kind: Answer, Token: token, Result: Result{Err: textNoEye}})
		return r.out
	}
	quality, quick := int64(60), true
	q := r.ask(t.sessions[i], cdppage.CommandCaptureScreenshot, cdppage.CaptureScreenshotParams{
		Format: cdppage.CaptureScreenshotFormatJpeg, Quality: &quality, OptimizeForSpeed: &quick,
	}, (*Router).pictured)
	q.token = token
	r.deadlines.put(q, limitPicture, now)
	return r.out
}

const (
	textNoEye     = "The tab cannot be looked at yet"
	textNoPicture = "The tab gave no picture within 5s: Chromium draws no hidden tab, and a busy page draws late"
)

// pictured passes the picture on, or why there is none.
func (r *Router) pictured(q *request, m *Message, env *Envelope) {
	result := Result{Err: errorOf(m, env)}
	if env.Result.Present() {
		result.Picture = stringParam(env.Result.Of(m.Text()), "data")
	}
	r.out = append(r.out, Action{Kind: Answer, Token: q.token, Result: result})
}
