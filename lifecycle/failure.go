package lifecycle

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// Failure is why something could not be had, a browser mostly, in a form that
// programs (Kind) and people (Text, Next) can act on.
type Failure struct {
	Kind  string        `json:"kind"`
	Text  string        `json:"text"`
	Hint  string        `json:"hint,omitempty"`  // what to do now; empty: what the kind says
	Lines []string      `json:"lines,omitempty"` // Chrome's own last lines, addresses redacted
	Retry time.Duration `json:"retry,omitempty"` // when it may be worth another try; 0: the kind says
}

// The kinds of Failure. There are no others: package proxy, which has some of
// its own, takes its kinds from these.
const (
	AccountConflict      = "account_conflict"
	AdminOnly            = "admin_only"
	BadRequest           = "bad_request"
	BreakerOpen          = "breaker_open"
	BrowserCapacity      = "browser_capacity"
	BrowserInUse         = "browser_in_use"
	BrowserMissing       = "browser_missing"
	BrowserStopping      = "browser_stopping"
	BrowserUnreachable   = "browser_unreachable"
	CapacityUnavailable  = "capacity_unavailable"
	CleanupPending       = "cleanup_pending"
	ClientInUse          = "client_in_use"
	Draining             = "draining"
	IdentityCapacity     = "identity_capacity"
	InvalidRequest       = "invalid_request"
	LaunchBusy           = "launch_busy"
	LaunchFailed         = "launch_failed" // none of the others
	LaunchSandbox        = "launch_sandbox"
	LaunchTimeout        = "launch_timeout"
	NoDisplay            = "no_display"
	NoPicture            = "no_picture"
	ProfileDenied        = "profile_denied"
	ProfileForeignHost   = "profile_foreign_host"
	ProfileInUse         = "profile_in_use"
	ProfileInvalid       = "profile_invalid"
	SessionClosed        = "session_closed"
	SessionConflict      = "session_conflict"
	SessionForbidden     = "session_forbidden"
	SessionReleaseFailed = "session_release_failed"
	StateUnwritable      = "state_unwritable"
	StoreLocked          = "store_locked"
	TmpdirTooLong        = "tmpdir_too_long"
	Unauthenticated      = "unauthenticated"
	UnknownCall          = "unknown_call"
	UnknownSession       = "unknown_session"
	UnknownStore         = "unknown_store"
	ZiniaoDenied         = "ziniao_denied"
	ZiniaoFailed         = "ziniao_failed"
	ZiniaoUnreachable    = "ziniao_unreachable"
)

// kinds says of each kind how HTTP tells it, whether it may pass by itself,
// and what to do when the failure does not know better.
var kinds = map[string]struct {
	status    int
	retryable bool
	retry     time.Duration // for Retry-After
	next      string
}{
	AccountConflict:      {503, false, time.Minute, "stop the stores of the other account first; one account can be used on a machine at a time"},
	AdminOnly:            {401, false, 0, "send Authorization: Bearer with what stands in run/STORE.admin of the state directory"},
	BadRequest:           {400, false, 0, "correct the call"},
	BreakerOpen:          {503, true, time.Minute, "look into the log for why the browser ends, then wait for the next trial"},
	BrowserCapacity:      {503, true, 10 * time.Second, "stop a browser that is not needed, or allow more"},
	BrowserInUse:         {409, true, 10 * time.Second, "wait until its clients have left, or force it"},
	BrowserMissing:       {503, false, time.Minute, "install Chrome or Chromium, or give the binary with --chrome"},
	BrowserStopping:      {503, true, 5 * time.Second, "try again when it has stopped"},
	BrowserUnreachable:   {503, true, 2 * time.Second, "see the log of cdpmux, then try again"},
	CapacityUnavailable:  {503, true, 5 * time.Second, "end a client, or start cdpmux with a larger --max-clients"},
	CleanupPending:       {503, true, 10 * time.Second, "try again; if it stays so, end the processes that are named in the log by hand"},
	ClientInUse:          {409, false, 0, "choose another client name, or end the one that is there: POST /v1/clients/{id}/close"},
	Draining:             {503, true, 10 * time.Second, "try again when it is up"},
	IdentityCapacity:     {503, true, time.Minute, "close sessions that are not needed"},
	InvalidRequest:       {422, false, 0, "correct these fields"},
	LaunchBusy:           {503, true, 10 * time.Second, "try again; other stores of this machine start their browsers now"},
	LaunchFailed:         {503, true, 5 * time.Second, "--log-level debug shows all that Chrome prints"},
	LaunchSandbox:        {503, false, time.Minute, "serve as another user, or add --no-sandbox"},
	LaunchTimeout:        {504, true, 10 * time.Second, "try again, or allow more with --start-timeout"},
	NoDisplay:            {503, false, time.Minute, "set DISPLAY, or add --headless"},
	NoPicture:            {502, true, 10 * time.Second, "show the tab in its window, or try again when its page is quiet"},
	ProfileDenied:        {503, false, time.Minute, "give a directory that this user can write to with --profile"},
	ProfileForeignHost:   {503, false, time.Minute, "stop that Chrome; if it is gone for good, delete SingletonLock in the profile"},
	ProfileInUse:         {503, true, 10 * time.Second, "close that Chrome, or choose another directory with --profile"},
	ProfileInvalid:       {503, false, time.Minute, "give a directory that this user can write to with --profile"},
	SessionClosed:        {409, false, 0, "take another session_id for another session"},
	SessionConflict:      {409, false, 0, "repeat the first request as it was, or take another session_id"},
	SessionForbidden:     {403, false, 0, "use the close_token that the session was made with"},
	SessionReleaseFailed: {503, true, 5 * time.Second, "close again"},
	StateUnwritable:      {503, true, 10 * time.Second, "make room on the disk of the state directory, then try again"},
	StoreLocked:          {423, false, time.Minute, "cdpmux enable --store NAME makes it usable again"},
	TmpdirTooLong:        {503, false, time.Minute, "let /run/cdpmux or /tmp be writable"},
	Unauthenticated:      {401, false, 0, "send Authorization: Bearer with what stands in run/STORE.token of the state directory"},
	UnknownCall:          {404, false, 0, "call one of these: GET, POST /v1/sessions, GET /v1/sessions/{id}, POST /v1/sessions/{id}/close, POST /v1/sessions/{id}/heartbeat"},
	UnknownSession:       {404, false, 0, "see cdpmux session list"},
	UnknownStore:         {404, false, 0, "ask the proxy of that store: cdpmux stores list"},
	ZiniaoDenied:         {503, false, time.Minute, "log in to the Ziniao client and give the account its WebDriver permission"},
	ZiniaoFailed:         {503, true, 10 * time.Second, "look into the Ziniao client; try again when the store opens there"},
	ZiniaoUnreachable:    {503, true, 10 * time.Second, "start the Ziniao client in WebDriver mode, or correct --ziniao-addr"},
}

func (f *Failure) Error() string {
	if len(f.Lines) == 0 {
		return f.Text
	}
	return f.Text + "; its last lines: " + strings.Join(f.Lines, " | ")
}

// FailureKind is the Kind; a method, so that callers need not import this package.
func (f *Failure) FailureKind() string { return f.Kind }

// Next says what to do about it.
func (f *Failure) Next() string { return cmp.Or(f.Hint, kinds[f.Kind].next) }

// Status is the HTTP status that tells it.
func (f *Failure) Status() int { return cmp.Or(kinds[f.Kind].status, http.StatusServiceUnavailable) }

// Retryable reports whether waiting may mend it.
func (f *Failure) Retryable() bool { return kinds[f.Kind].retryable }

// RetryAfter is how long to wait before another try; a second at least.
func (f *Failure) RetryAfter() time.Duration {
	return max(time.Second, cmp.Or(f.Retry, kinds[f.Kind].retry))
}
