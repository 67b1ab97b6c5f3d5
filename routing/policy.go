package routing

import (
	"bytes"
	"slices"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/systeminfo"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/tracing"
)

// verdict is what becomes of a method.
type verdict string

const (
	allow   verdict = "allow"   // passes, like whatever a page session says that has no row
	scope   verdict = "scope"   // passes, held to what is the client's own
	emulate verdict = "emulate" // answered by the proxy, as a Chrome of its own would
	refuse  verdict = "refuse"  // answered with an error
)

// rule is a row of the policy: the verdict, the reason, and who carries it out
// (nil: it just passes).
type rule struct {
	verdict verdict
	why     string
	do      func(*Router, *conn, *session, *Message, *Envelope)
}

// policy holds at every depth: at a root, on a page session, inside
// sendMessageToTarget. A method without a row passes on page sessions and is
// unknown at roots: a new one there might act on everybody. Ids of others in
// any command's params are hidden besides (hideForeign).
var policy map[string]rule

// domains are refused whole.
var domains = map[string]string{
	"ServiceWorker":      "shows and ends the registrations of everybody",
	"Extensions":         "browser-wide",
	"BluetoothEmulation": "browser-wide",
	"Tethering":          "opens ports of this machine",
}

func init() { // not at the declaration: the handlers lead back to the table
	policy = map[string]rule{
		// Targets and sessions.
		cdptarget.CommandGetTargets:             {scope, "shows its own targets only", (*Router).getTargets},
		cdptarget.CommandGetTargetInfo:          {scope, "attached is the client's own truth", (*Router).getTargetInfo},
		cdptarget.CommandCreateTarget:           {scope, "makes it the client's, in a window of its own; closed schemes are refused", (*Router).createTarget},
		cdptarget.CommandCloseTarget:            {scope, "its own targets only; its window counts it no longer", (*Router).closeTargetCommand},
		cdptarget.CommandActivateTarget:         {scope, "its own targets only, which have windows of their own", nil},
		cdptarget.CommandAttachToTarget:         {scope, "its own targets only; a non-flat session is made of a flat one", (*Router).attachToTarget},
		cdptarget.CommandDetachFromTarget:       {scope, "its own sessions only; one that the hub made ends at the hub", (*Router).detachCommand},
		cdptarget.CommandAttachToBrowserTarget:  {allow, "a root within its own", nil},
		cdptarget.CommandAutoAttachRelated:      {scope, "its own targets only", nil},
		cdptarget.CommandGetDevToolsTarget:      {scope, "its own targets only", nil},
		cdptarget.CommandSetDiscoverTargets:     {emulate, "one discovery serves all", (*Router).setDiscoverTargets},
		cdptarget.CommandSetAutoAttach:          {emulate, "at a root it would hold everybody's tabs; passes elsewhere", (*Router).setAutoAttach},
		runtime.CommandRunIfWaitingForDebugger:  {scope, "ends what the hub holds for it", (*Router).runCommand},
		cdppage.CommandEnable:                   {allow, "notes who can close a dialog", (*Router).pageEnable},
		commandSendMessage:                      {emulate, "what is inside is a command like any other", (*Router).sendMessageToTarget},
		cdptarget.CommandCreateBrowserContext:   {scope, "makes it the client's", (*Router).createBrowserContext},
		cdptarget.CommandGetBrowserContexts:     {scope, "shows its own contexts only", (*Router).getBrowserContexts},
		cdptarget.CommandDisposeBrowserContext:  {scope, "its own contexts only", (*Router).disposeBrowserContext},
		cdptarget.CommandExposeDevToolsProtocol: {refuse, "gives a page the whole browser", notAllowed},
		cdptarget.CommandSetRemoteLocations:     {refuse, "browser-wide, the last one wins", notAllowed},
		cdptarget.CommandOpenDevTools:           {refuse, "opens a window of Chrome's own", notAllowed},

		// The browser.
		browser.CommandClose:                   {emulate, "closes what is the client's, never Chrome", (*Router).browserClose},
		browser.CommandCrash:                   {refuse, "everybody's browser", notAllowed},
		browser.CommandCrashGPUProcess:         {refuse, "everybody's browser", notAllowed},
		browser.CommandGetVersion:              {allow, "the same for all", nil},
		browser.CommandGetBrowserCommandLine:   {allow, "the same for all", nil},
		browser.CommandGetHistogram:            {allow, "counts, of nobody in particular", nil},
		browser.CommandGetHistograms:           {allow, "counts, of nobody in particular", nil},
		browser.CommandGetGlobalPrivacyControl: {allow, "the same for all", nil},
		browser.CommandSetGlobalPrivacyControl: {refuse, "browser-wide, the last one wins", notAllowed},
		browser.CommandAddMockCamera:           {refuse, "browser-wide", notAllowed},
		browser.CommandSetDockTile:             {refuse, "browser-wide, the last one wins", notAllowed},
		browser.CommandExecuteBrowserCommand:   {refuse, "works Chrome's own interface", notAllowed},
		browser.CommandGetWindowForTarget:      {scope, "its own targets only", (*Router).getWindowForTarget},
		browser.CommandGetWindowBounds:         {scope, "windows of its own targets only", (*Router).windowCommand},
		browser.CommandSetWindowBounds:         {scope, "windows of its own targets only", (*Router).windowCommand},
		browser.CommandSetContentsSize:         {scope, "windows of its own targets only", (*Router).windowCommand},
		browser.CommandSetDownloadBehavior:     {emulate, "browser-wide, the last one wins", (*Router).setDownloadBehavior},
		commandPageDownload:                    {emulate, "acts browser-wide too", (*Router).setDownloadBehavior},
		browser.CommandCancelDownload:          {scope, "its own downloads only", (*Router).cancelDownload},
		commandGrantPermissions:                {scope, "Chrome replaces the list; each client's stays", (*Router).grantPermissions},
		browser.CommandSetPermission:           {scope, "goes when its client goes", (*Router).setPermission},
		browser.CommandResetPermissions:        {scope, "takes back its own only", (*Router).resetPermissions},

		commandPrivacySandbox:                            {refuse, "browser-wide", notAllowed},
		commandAddScreen:                                 {refuse, "everybody's screens", notAllowed},
		commandUpdateScreen:                              {refuse, "everybody's screens", notAllowed},
		commandRemoveScreen:                              {refuse, "everybody's screens", notAllowed},
		commandSetPrimaryScreen:                          {refuse, "everybody's screens", notAllowed},
		commandDisplayFeatures:                           {scope, "an empty list kills Chrome", displayFeatures},
		memory.CommandSetPressureNotificationsSuppressed: {refuse, "browser-wide", notAllowed},
		memory.CommandSimulatePressureNotification:       {refuse, "browser-wide", notAllowed},

		// Pages.
		commandNavigate:     {scope, "closed schemes are refused; what it says of a failure is noted for the operator", (*Router).navigate},
		commandSetFiles:     {scope, "files below the operator's upload roots, if there are any", (*Router).setFiles},
		commandDispatchDrag: {scope, "files below the operator's upload roots, if there are any", (*Router).drag},

		// What all share: the login, the certificate checks, the trace.
		storage.CommandGetCookies:                   {allow, "the login is for all", nil},
		storage.CommandSetCookies:                   {allow, "the login is for all", nil},
		storage.CommandClearCookies:                 {refuse, "wipes the login that all share", (*Router).clear},
		commandDeleteCookies:                        {refuse, "wipes the login that all share", (*Router).clear},
		network.CommandClearBrowserCookies:          {refuse, "wipes the login that all share", (*Router).clear},
		network.CommandClearBrowserCache:            {allow, "costs the others time, and nothing else", nil},
		storage.CommandClearDataForOrigin:           {refuse, "of cookies: wipes the login that all share", (*Router).clearData},
		storage.CommandClearDataForStorageKey:       {refuse, "of cookies: wipes the login that all share", (*Router).clearData},
		storage.CommandRunBounceTrackingMitigations: {refuse, "wipes what all share", (*Router).clear},
		storage.CommandGetUsageAndQuota:             {allow, "reads", nil},
		storage.CommandGetTrustTokens:               {allow, "reads", nil},
		storage.CommandGetStorageKey:                {allow, "reads", nil},
		commandStorageKeyForFrame:                   {allow, "reads", nil},
		security.CommandSetIgnoreCertificateErrors:  {scope, "at a root it acts on everybody's tabs", notAtRoot},
		security.CommandEnable:                      {allow, "turns on events of its own session", nil},
		security.CommandDisable:                     {allow, "turns off events of its own session", nil},
		commandFetchEnable:                          {scope, "at a root it stops everybody's requests", notAtRoot},
		commandFetchDisable:                         {allow, "ends nothing at a root", nil},
		systeminfo.CommandGetInfo:                   {allow, "the same for all", nil},
		systeminfo.CommandGetProcessInfo:            {allow, "the same for all", nil},
		systeminfo.CommandGetFeatureState:           {allow, "the same for all", nil},
		tracing.CommandStart:                        {allow, "one at a time, which Chrome itself says; ends with its session; shows addresses of all tabs", nil},
		tracing.CommandEnd:                          {allow, "of its own trace, which Chrome sees to", nil},
		tracing.CommandGetCategories:                {allow, "reads", nil},
		tracing.CommandGetTrackEventDescriptor:      {allow, "reads", nil},
		tracing.CommandRecordClockSyncMarker:        {allow, "of its own trace, which Chrome sees to", nil},
		tracing.CommandRequestMemoryDump:            {allow, "of its own trace, which Chrome sees to", nil},
		commandIORead:                               {allow, "handles are good on their own session only", nil},
		commandIOClose:                              {allow, "handles are good on their own session only", nil},
	}
}

// apply does what the policy says of a command.
func (r *Router) apply(c *conn, s *session, m *Message, env *Envelope) {
	if !r.audit {
		r.decide(c, s, m, env)
		return
	}
	method, target := audited(env.Method), s.targetID // the message goes on
	if s.root {
		target = ""
	}
	v := r.decide(c, s, m, env)
	r.record(c.client.id, method, target, v)
}

// decide is apply, and returns the verdict of the method's row.
func (r *Router) decide(c *conn, s *session, m *Message, env *Envelope) verdict {
	rule, ok := policy[string(env.Method)]
	r.limit = limitOf(s, env.Method)
	domain, _, _ := bytes.Cut(env.Method, []byte("."))
	closed := !ok && domains[string(domain)] != ""
	if r.rules != nil {
		switch says, n := r.rules.of(c.client.id, string(env.Method)); says {
		case ruledOut:
			r.deny(s, env, "rule", r.rules.refusal(c.client.id, string(env.Method), n))
			return rule.verdict
		case granted:
			if closed || rule.verdict == refuse {
				r.forward(c, s, m, env)
				return allow
			}
		}
	}
	switch {
	case closed:
		notAllowed(r, c, s, m, env)
	case ok && rule.do != nil:
		rule.do(r, c, s, m, env)
	case !ok && s.root:
		r.denied = "unknown"
		r.reply(s, env.ID, errorBody(codeMethod, "'"+string(env.Method)+"' wasn't found"))
	default:
		r.forward(c, s, m, env)
	}
	return rule.verdict
}

func notAllowed(r *Router, _ *conn, s *session, _ *Message, env *Envelope) {
	r.deny(s, env, "policy", textNotAllowed)
}

func notAtRoot(r *Router, c *conn, s *session, m *Message, env *Envelope) {
	if s.root {
		notAllowed(r, c, s, m, env)
		return
	}
	r.forward(c, s, m, env)
}

// displayFeatures passes but for an empty list, of which Chrome dies (measured).
func displayFeatures(r *Router, c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	if v, ok := Member(params, "features"); ok {
		for range elements(v.Of(params)) {
			r.forward(c, s, m, env)
			return
		}
	}
	r.deny(s, env, "policy", "features must not be empty: use Emulation.clearDisplayFeaturesOverride")
}

// browserClose does to the client what Chrome's end would: all its tabs and
// connections go.
func (r *Router) browserClose(c *conn, s *session, _ *Message, env *Envelope) {
	r.reply(s, env.ID, `"result":{}`)
	c.client.grace = 0 // as with Chrome's end, nothing stays
	r.end(c, ReasonBrowserClose)
	for _, o := range slices.Clone(c.client.conns) {
		r.end(o, ReasonBrowserClose)
	}
	for _, t := range r.owned(c.client) { // of a client that HTTP made
		r.closeTarget(t)
	}
}
