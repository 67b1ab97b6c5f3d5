package proxytest

import (
	"slices"
	"strconv"
	"strings"
)

// method is how one command is answered. It replies itself, as events may have
// to come before and after the reply.
type method func(b *Browser, s *session, cmd Command)

// anywhere answers on every session, as the Target domain does.
var anywhere map[string]method

// atBrowser and atPage answer on browser sessions, and on all others but tabs.
var atBrowser, atPage map[string]method

// The tables' methods use the tables, by a message inside a message.
func init() {
	anywhere = map[string]method{
		"Target.activateTarget":      withTarget(func(_ *Browser, s *session, cmd Command, _ *target) { s.ok(cmd) }),
		"Target.attachToTarget":      attachToTarget,
		"Target.closeTarget":         closeTarget,
		"Target.createTarget":        createTarget,
		"Target.detachFromTarget":    detachFromTarget,
		"Target.getTargetInfo":       getTargetInfo,
		"Target.getTargets":          getTargets,
		"Target.sendMessageToTarget": sendMessageToTarget,
		"Target.setAutoAttach":       setAutoAttach,
		"Target.setDiscoverTargets":  setDiscoverTargets,
		"Runtime.runIfWaitingForDebugger": func(b *Browser, s *session, cmd Command) {
			s.waiting = false
			b.released(s.target)
			s.ok(cmd)
		},
	}
	browser := map[string]method{ // these work on page sessions as well
		"Browser.close":               closeBrowser,
		"Browser.crash":               func(b *Browser, _ *session, _ Command) { b.die() },
		"Browser.getVersion":          func(_ *Browser, s *session, cmd Command) { s.result(cmd, []byte(versionResult)) },
		"Browser.getWindowForTarget":  getWindowForTarget,
		"Browser.setDownloadBehavior": func(_ *Browser, s *session, cmd Command) { s.ok(cmd) },
		"Storage.getCookies":          func(_ *Browser, s *session, cmd Command) { s.result(cmd, []byte(`{"cookies":[]}`)) },
	}
	atBrowser = map[string]method{
		"Target.attachToBrowserTarget": attachToBrowserTarget,
		"Target.createBrowserContext":  createBrowserContext,
		"Target.disposeBrowserContext": disposeBrowserContext,
		"Target.getBrowserContexts":    getBrowserContexts,
	}
	notAllowed := func(_ *Browser, s *session, cmd Command) { s.fail(cmd, -32000, "Not allowed") }
	atPage = map[string]method{
		"Target.attachToBrowserTarget":  notAllowed,
		"Target.createBrowserContext":   notAllowed,
		"Target.exposeDevToolsProtocol": notAllowed,
		"Target.getBrowserContexts":     notAllowed,
		"Page.captureScreenshot":        captureScreenshot,
		"Page.close":                    closePage,
		"Page.crash":                    func(b *Browser, s *session, _ Command) { b.crash(s.target) },
		"Page.enable":                   func(_ *Browser, s *session, cmd Command) { s.page = true; s.ok(cmd) },
		"Page.disable":                  func(_ *Browser, s *session, cmd Command) { s.page = false; s.ok(cmd) },
		"Page.getFrameTree":             getFrameTree,
		"Page.navigate":                 navigate,
		"Runtime.enable":                enableRuntime,
		"Runtime.evaluate":              evaluate,
	}
	for name, m := range browser {
		atBrowser[name], atPage[name] = m, m
	}
}

// Any other method of these domains is answered {}.
var (
	browserDomains = []string{"Browser", "Extensions", "Fetch", "IO", "Memory", "Security", "Storage", "SystemInfo", "Target", "Tracing"}
	tabDomains     = []string{"IO", "Target", "Tracing"}
	pageDomains    = append([]string{
		"Accessibility", "Animation", "Audits", "CSS", "Console", "DOM", "DOMDebugger", "DOMSnapshot", "DOMStorage", "Debugger",
		"DeviceAccess", "Emulation", "HeapProfiler", "IndexedDB", "Input", "Inspector", "LayerTree", "Log", "Media", "Network",
		"Overlay", "Page", "Performance", "Profiler", "Runtime", "ServiceWorker", "WebAuthn", "WebAudio",
	}, browserDomains...)
)

// perform answers a command, without the faults that may be set for it.
func (b *Browser) perform(s *session, cmd Command) {
	if s.gone {
		return
	}
	table, domains := atPage, pageDomains
	switch s.target.kind {
	case "browser":
		table, domains = atBrowser, browserDomains
	case "tab":
		table, domains = nil, tabDomains
	}
	if s.target.crashed {
		s.target.pending = append(s.target.pending, &pending{session: s, cmd: cmd})
		if cmd.Method == "Page.reload" {
			b.revive(s.target)
		}
		return
	}
	if m := table[cmd.Method]; m != nil {
		m(b, s, cmd)
		return
	}
	if m := anywhere[cmd.Method]; m != nil {
		m(b, s, cmd)
		return
	}
	if domain, _, ok := strings.Cut(cmd.Method, "."); ok && slices.Contains(domains, domain) {
		s.ok(cmd)
		return
	}
	s.fail(cmd, -32601, "'"+cmd.Method+"' wasn't found")
}

const (
	noTarget  = "No target with given id found"
	noSession = "No session with given id"
)

func missing(s *session, cmd Command, name string) {
	e := &Error{Code: -32602, Message: "Invalid parameters", Data: "Failed to deserialize params." + name + " - BINDINGS: mandatory field missing at position 8"}
	if cmd.Params == nil {
		e.Data = "Failed to deserialize params - CBOR: map start expected at position 0"
	}
	s.failWith(cmd, e)
}

// withTarget finds params.targetId, which must be there.
func withTarget(do func(*Browser, *session, Command, *target)) method {
	return func(b *Browser, s *session, cmd Command) {
		id := cmd.Param("targetId")
		t := b.targets[id]
		switch {
		case id == "":
			missing(s, cmd, "targetId")
		case t == nil:
			s.fail(cmd, -32602, noTarget)
		default:
			do(b, s, cmd, t)
		}
	}
}

func attachToTarget(b *Browser, s *session, cmd Command) {
	withTarget(func(b *Browser, s *session, cmd Command, t *target) {
		var params struct{ Flatten bool }
		_ = cmd.Into(&params)
		child := b.attach(s, t, params.Flatten, false)
		s.result(cmd, []byte(`{"sessionId":"`+child.id+`"}`))
	})(b, s, cmd)
}

func attachToBrowserTarget(b *Browser, s *session, cmd Command) {
	t := &target{id: newUUID(), kind: "browser"}
	b.announce(t)
	child := b.attach(s, t, true, false)
	s.result(cmd, []byte(`{"sessionId":"`+child.id+`"}`))
}

func detachFromTarget(b *Browser, s *session, cmd Command) {
	id, target := cmd.Param("sessionId"), cmd.Param("targetId")
	for _, child := range s.children {
		if child.id == id || id == "" && child.target.id == target {
			b.detach(child)
			s.ok(cmd)
			return
		}
	}
	switch {
	case id != "":
		s.fail(cmd, -32602, noSession)
	case target != "":
		s.fail(cmd, -32602, "No session for given target id")
	default:
		s.fail(cmd, -32602, "Session id must be specified")
	}
}

func closeTarget(b *Browser, s *session, cmd Command) {
	withTarget(func(b *Browser, s *session, cmd Command, t *target) {
		if !t.crashed {
			s.result(cmd, []byte(`{"success":true}`))
		}
		switch t.kind {
		case "page", "tab":
			b.closeTab(t)
		default:
			b.closeChild(t)
		}
		if t.crashed {
			s.result(cmd, []byte(`{"success":true}`))
		}
	})(b, s, cmd)
}

func createTarget(b *Browser, s *session, cmd Command) {
	var params struct {
		URL                           *string
		BrowserContextID              string
		NewWindow, Background, ForTab bool
	}
	if cmd.Into(&params) != nil || params.URL == nil {
		missing(s, cmd, "url")
		return
	}
	ctx := b.defaultContext
	if params.BrowserContextID != "" {
		if ctx = b.contextByID(params.BrowserContextID); ctx == nil {
			s.fail(cmd, -32000, "Failed to find browser context with id "+params.BrowserContextID)
			return
		}
	}
	page := b.openTab(newTab{url: *params.URL, context: ctx, newWindow: params.NewWindow, background: params.Background})
	id := page.id
	if params.ForTab {
		id = page.tab.id
	}
	s.result(cmd, []byte(`{"targetId":"`+id+`"}`))
	b.load(page, *params.URL)
}

func getTargetInfo(b *Browser, s *session, cmd Command) {
	t := s.target
	if id := cmd.Param("targetId"); id != "" {
		if t = b.targets[id]; t == nil {
			s.fail(cmd, -32602, noTarget)
			return
		}
	}
	s.result(cmd, []byte(`{"targetInfo":`+t.info()+`}`))
}

func getTargets(b *Browser, s *session, cmd Command) {
	var params struct{ Filter filter }
	_ = cmd.Into(&params)
	if params.Filter == nil {
		params.Filter = defaultFilter
	}
	var infos []string
	for _, t := range b.sorted() {
		if params.Filter.lets(t.kind) {
			infos = append(infos, t.info())
		}
	}
	s.result(cmd, []byte(`{"targetInfos":[`+strings.Join(infos, ",")+`]}`))
}

func sendMessageToTarget(b *Browser, s *session, cmd Command) {
	id := cmd.Param("sessionId")
	for _, child := range s.children {
		if child.id != id {
			continue
		}
		s.ok(cmd)
		inner, refused := parseCommand([]byte(cmd.Param("message")))
		if refused == nil {
			b.perform(child, inner)
		}
		return
	}
	s.fail(cmd, -32602, noSession)
}

func setDiscoverTargets(b *Browser, s *session, cmd Command) {
	var params struct {
		Discover *bool
		Filter   filter
	}
	switch err := cmd.Into(&params); {
	case err != nil || params.Discover == nil:
		missing(s, cmd, "discover")
		return
	case !*params.Discover && params.Filter != nil:
		s.fail(cmd, -32602, "Filter should not be present with `discover` is off")
		return
	case *params.Discover:
		if params.Filter == nil {
			params.Filter = defaultFilter
		}
		b.discovers(s, params.Filter)
	default:
		s.discover = nil
		b.discoverers = remove(b.discoverers, s)
	}
	s.ok(cmd)
}

func setAutoAttach(b *Browser, s *session, cmd Command) {
	var params struct {
		AutoAttach, WaitForDebuggerOnStart *bool
		Flatten                            bool
		Filter                             filter
	}
	switch err := cmd.Into(&params); {
	case err != nil || params.AutoAttach == nil:
		missing(s, cmd, "autoAttach")
		return
	case params.WaitForDebuggerOnStart == nil:
		missing(s, cmd, "waitForDebuggerOnStart")
		return
	case s.target.kind == "browser" && !params.Flatten:
		s.fail(cmd, -32602, "Only flatten protocol is supported with browser level auto-attach")
		return
	}
	if params.Filter == nil {
		params.Filter = defaultFilter
	}
	if s.target.kind == "browser" && params.Filter.lets("tab") && params.Filter.lets("page") {
		s.fail(cmd, -32602, `Filter should not simultaneously allow "tab" and "page", page targets are attached via tab targets`)
		return
	}
	if *params.AutoAttach {
		s.auto, s.autoWait = params.Filter, *params.WaitForDebuggerOnStart
		for _, t := range b.sorted() {
			b.autoAttachTo(s, t, false)
		}
	} else {
		s.auto = nil
		for _, child := range slices.Clone(s.children) {
			if child.byAuto {
				b.detach(child)
			}
		}
	}
	s.ok(cmd)
}

func getBrowserContexts(b *Browser, s *session, cmd Command) {
	ids := make([]string, 0, len(b.contexts))
	for _, ctx := range b.contexts {
		ids = append(ids, `"`+ctx.id+`"`)
	}
	s.result(cmd, []byte(`{"browserContextIds":[`+strings.Join(ids, ",")+`],"defaultBrowserContextId":"`+b.defaultContext.id+`"}`))
}

func createBrowserContext(b *Browser, s *session, cmd Command) {
	var params struct{ DisposeOnDetach bool }
	_ = cmd.Into(&params)
	ctx := &browserContext{id: newID()}
	if params.DisposeOnDetach {
		ctx.owner = s
	}
	b.contexts = append(b.contexts, ctx)
	s.result(cmd, []byte(`{"browserContextId":"`+ctx.id+`"}`))
}

func disposeBrowserContext(b *Browser, s *session, cmd Command) {
	id := cmd.Param("browserContextId")
	switch ctx := b.contextByID(id); ctx {
	case nil:
		s.fail(cmd, -32000, "Failed to find context with id "+id)
	case b.defaultContext:
		s.fail(cmd, -32000, "Cannot dispose default browser context.")
	default:
		b.dispose(ctx)
		s.ok(cmd)
	}
}

func getWindowForTarget(b *Browser, s *session, cmd Command) {
	t := s.target
	if id := cmd.Param("targetId"); id != "" {
		if t = b.targets[id]; t == nil {
			s.fail(cmd, -32000, "No target with given id")
			return
		}
	}
	if t.window == nil {
		s.fail(cmd, -32000, "No web contents in the target")
		return
	}
	s.result(cmd, []byte(`{"windowId":`+strconv.Itoa(t.window.id)+
		`,"bounds":{"left":10,"top":10,"width":780,"height":580,"windowState":"normal"}}`))
}

func closeBrowser(b *Browser, s *session, cmd Command) {
	s.ok(cmd)
	b.die()
}

func closePage(b *Browser, s *session, cmd Command) {
	s.ok(cmd)
	b.closeTab(s.target)
}

func captureScreenshot(b *Browser, s *session, cmd Command) {
	if b.opts.Screenshot == 0 {
		s.result(cmd, []byte(`{"data":"`+onePixel+`"}`))
		return
	}
	s.result(cmd, []byte(`{"data":"`), b.filling(b.opts.Screenshot), []byte(`"}`))
}

// onePixel is a PNG of one pixel.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func getFrameTree(b *Browser, s *session, cmd Command) {
	if b.paused(s, cmd) {
		return
	}
	s.result(cmd, []byte(`{"frameTree":{"frame":`+s.target.frame(s.target.url, s.target.loader)+`}}`))
}

func navigate(b *Browser, s *session, cmd Command) {
	var params struct{ URL *string }
	if cmd.Into(&params) != nil || params.URL == nil {
		missing(s, cmd, "url")
		return
	}
	if b.paused(s, cmd) {
		return
	}
	b.navigate(s.target, *params.URL, func(loader string) {
		s.result(cmd, []byte(`{"frameId":"`+s.target.id+`","loaderId":"`+loader+`","isDownload":false}`))
	})
}

// paused keeps a command for later when a session of its target waits for the
// debugger.
func (b *Browser) paused(s *session, cmd Command) bool {
	for _, other := range s.target.sessions {
		if other.waiting {
			cmd.Params = slices.Clone(cmd.Params)
			s.target.pending = append(s.target.pending, &pending{session: s, cmd: cmd, paused: true})
			return true
		}
	}
	return false
}

func enableRuntime(_ *Browser, s *session, cmd Command) {
	if !s.runtime {
		s.runtime = true
		s.event("Runtime.executionContextCreated", s.target.executionContext())
	}
	s.ok(cmd)
}

// The fake's version, in the same words over HTTP and over CDP.
const (
	product       = "Chrome/156.0.8078.114"
	userAgent     = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36"
	revision      = "@ea19f9737303a76e07b53c6a1eec43355aca3b1d"
	versionResult = `{"protocolVersion":"1.3","product":"` + product + `","revision":"` + revision + `","userAgent":"` + userAgent + `","jsVersion":"15.6.75.63"}`
)
