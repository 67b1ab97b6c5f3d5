package routing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// params that make a row's case: without, the verdict shows as well.
var policyParams = map[string]string{
	"Storage.clearDataForOrigin":           `{"origin":"https://shop.example","storageTypes":"cookies,local_storage"}`,
	"Storage.clearDataForStorageKey":       `{"storageKey":"https://shop.example/","storageTypes":"all"}`,
	"Target.createTarget":                  `{"url":"u"}`,
	"Target.setDiscoverTargets":            `{"discover":true}`,
	"Target.setAutoAttach":                 `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}`,
	"Target.sendMessageToTarget":           `{"sessionId":"NONE","message":"{}"}`,
	"Browser.grantPermissions":             `{"permissions":["geolocation"]}`,
	"Emulation.setDisplayFeaturesOverride": `{"features":[{"orientation":"vertical","offset":1,"maskLength":1}]}`,
	"Browser.setDownloadBehavior":          `{"behavior":"default"}`,
	"Page.setDownloadBehavior":             `{"behavior":"default"}`,
	"Browser.setWindowBounds":              `{"windowId":7,"bounds":{"width":500}}`,
}

// TestPolicy tries each row of the table at a connection's root, at a root
// nested in it and on a page session.
func TestPolicy(t *testing.T) {
	for _, method := range slices.Sorted(maps.Keys(policy)) {
		rule := policy[method]
		if rule.why == "" {
			t.Errorf("%s: no reason given", method)
		}
		for depth, session := range map[string]string{"root": "", "sub-root": "SUB", "page": "S1"} {
			t.Run(method+" at "+depth, func(t *testing.T) {
				p := playerWithPage(t)
				out := p.command(method, session)
				var asked, answered []string
				for _, o := range out {
					if strings.HasPrefix(o, ">b ") {
						asked = append(asked, o)
					} else if strings.HasPrefix(o, ">c1 ") && strings.Contains(o, `"id":99`) {
						answered = append(answered, o)
					}
				}
				passes := slices.ContainsFunc(asked, func(o string) bool { return strings.Contains(o, `"method":"`+method+`"`) })
				verdict := rule.verdict
				if atRootsOnly(method) && depth == "page" { // the page's own affair
					verdict = allow
				} else if atRootsOnly(method) {
					verdict = refuse
				}
				if method == "Target.setAutoAttach" && depth == "page" {
					verdict = allow
				}
				switch verdict {
				case refuse:
					if passes || len(answered) != 1 || !strings.Contains(answered[0], `"error"`) {
						t.Errorf("want an error and nothing sent, got %q", out)
					}
				case emulate:
					if passes {
						t.Errorf("want it kept from Chrome, got %q", out)
					}
				default:
					if !passes || len(answered) != 0 {
						t.Errorf("want it sent to Chrome, got %q", out)
					}
				}
			})
		}
	}
}

func atRootsOnly(method string) bool {
	return method == commandFetchEnable || method == "Security.setIgnoreCertificateErrors"
}

// TestUnknownMethods: what has no row passes on a page session and is unknown
// at roots.
func TestUnknownMethods(t *testing.T) {
	p := playerWithPage(t)
	for _, session := range []string{"", "SUB"} {
		out := p.command("Future.wipeEverything", session)
		if len(out) != 1 || !strings.Contains(out[0], `"code":-32601,"message":"'Future.wipeEverything' wasn't found"`) {
			t.Errorf("at root %q: got %q", session, out)
		}
	}
	if out := p.command("Future.paint", "S1"); len(out) != 1 || !strings.HasPrefix(out[0], ">b ") {
		t.Errorf("on a page session: got %q", out)
	}
}

// TestDomainsRefused: some domains act on everybody from any session.
func TestDomainsRefused(t *testing.T) {
	p := playerWithPage(t)
	for domain, why := range domains {
		if why == "" {
			t.Errorf("%s: no reason given", domain)
		}
		for _, session := range []string{"", "SUB", "S1"} {
			out := p.command(domain+".enable", session)
			if len(out) != 1 || !strings.Contains(out[0], `"code":-32000,"message":"Not allowed"`) {
				t.Errorf("%s on %q: got %q", domain, session, out)
			}
		}
	}
}

// TestClearingIsNotTricked: what names another context but acts on the shared one.
func TestClearingIsNotTricked(t *testing.T) {
	p := playerWithPage(t)
	for _, text := range []string{
		`{"id":9,"method":"Network.clearBrowserCookies","params":{"browserContextId":"x"},"sessionId":"S1"}`,
		`{"id":9,"method":"Storage.clearCookies","params":{},"sessionId":"S1"}`,
		`{"id":9,"method":"Storage.clearDataForOrigin","params":{"origin":"https://a","storageTypes":"local_storage,\tcookies","browserContextId":"x"},"sessionId":"S1"}`,
		`{"id":9,"method":"Emulation.setDisplayFeaturesOverride","params":{"features":[]},"sessionId":"S1"}`,
	} {
		if out := p.step("c1> " + text); len(out) != 1 || !strings.Contains(out[0], `"error"`) {
			t.Errorf("%s: got %q", text, out)
		}
	}
}

// TestClearingAllowed: --allow-clearing lets it pass.
func TestClearingAllowed(t *testing.T) {
	p := playerWithPage(t)
	p.r.clearing = true
	if out := p.command("Storage.clearCookies", ""); len(out) != 1 || !strings.HasPrefix(out[0], ">b ") {
		t.Errorf("got %q", out)
	}
}

// playerWithPage has client alice on c1 with a page (session S1) and a root
// nested in her own (session SUB).
func playerWithPage(t *testing.T) *player {
	p := newPlayer(t)
	for _, line := range []string{
		"start", "open c1 alice",
		`c1> {"id":1,"method":"Target.createTarget","params":{"url":"u"}}`,
		`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"PAGE1","type":"page","title":"","url":"u","attached":false}}}`,
		`b< Target.createTarget "result":{"targetId":"PAGE1"}`,
		`c1> {"id":2,"method":"Target.attachToTarget","params":{"targetId":"PAGE1","flatten":true}}`,
		`b> {"method":"Target.attachedToTarget","params":{"sessionId":"S1","targetInfo":{"targetId":"PAGE1","type":"page","title":"","url":"u","attached":true},"waitingForDebugger":false},"sessionId":"ROOT-c1"}`,
		`b< Target.attachToTarget "result":{"sessionId":"S1"}`,
		`c1> {"id":3,"method":"Target.attachToBrowserTarget"}`,
		`b> {"method":"Target.attachedToTarget","params":{"sessionId":"SUB","targetInfo":{"targetId":"browser-sub","type":"browser","title":"","url":"","attached":true},"waitingForDebugger":false},"sessionId":"ROOT-c1"}`,
		`b< Target.attachToBrowserTarget "result":{"sessionId":"SUB"}`,
	} {
		p.step(line)
	}
	return p
}

// command sends a method as alice, with id 99.
func (p *player) command(method, session string) []string {
	params := policyParams[method]
	if params == "" {
		params = "{}"
	}
	text := fmt.Sprintf(`c1> {"id":99,"method":"%s","params":%s`, method, params)
	if session != "" {
		text += `,"sessionId":"` + session + `"`
	}
	return p.step(text + "}")
}
