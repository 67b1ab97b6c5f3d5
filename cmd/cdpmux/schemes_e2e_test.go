package main_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// closedAddresses are the addresses of routing/testdata/schemes.txt that show
// files and pages of Chrome's own, in every spelling.
func closedAddresses(t *testing.T) (addresses []string) {
	t.Helper()
	raw, err := os.ReadFile("../../routing/testdata/schemes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		quoted, shows, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if quoted[0] == '"' && isClosed(shows) {
			addresses = append(addresses, text(t, []byte(quoted)))
		}
	}
	if len(addresses) < 35 {
		t.Fatalf("only %d addresses", len(addresses))
	}
	return addresses
}

func isClosed(shows string) bool {
	scheme, _, _ := strings.Cut(shows, ":")
	return slices.Contains([]string{"file", "chrome", "devtools", "view-source", "chrome-untrusted", "chrome-search", "chrome-native"}, scheme) &&
		!strings.HasPrefix(shows, "chrome://newtab") && !strings.HasPrefix(shows, "chrome://new-tab-page")
}

// No command loads a file or a page of Chrome's own, and no script does.
func TestClosedSchemes(t *testing.T) {
	t.Parallel()
	m := serve(t)
	site := proxytest.StartSite(t)
	a := newActor(t, m.dial(t, "a"), site.URL)
	refused := func(where, address string, err *proxytest.Error) {
		t.Helper()
		if err == nil || err.Code != -32000 || !strings.Contains(err.Message, "--allow-scheme") {
			t.Errorf("%q %s: want -32000 that names --allow-scheme, got %v", address, where, err)
		}
	}
	for _, address := range closedAddresses(t) {
		for depth, session := range a.depths {
			_, err := a.CallErr(session, "Target.createTarget", params{"url": address})
			refused("in createTarget at the "+depth, address, err)
		}
		_, err := a.CallErr(a.page.Session, "Page.navigate", params{"url": address})
		refused("in navigate", address, err)
		status, body := request(t, http.MethodPut, m.http("/client-a/json/new?"+url.PathEscape(address)))
		blank := strings.Contains(string(body), `"url": "about:blank"`) // it was no address to the proxy
		if !blank && (status != http.StatusForbidden || !strings.Contains(string(body), "--allow-scheme")) {
			t.Errorf("%q in /json/new: want 403 that names --allow-scheme, got %d %s", address, status, body)
		}
	}

	for _, address := range []string{"about:blank", "chrome://newtab/", "about:settings", "data:text/html,file:", "http:file:///etc/hostname"} {
		if _, err := a.CallErr("", "Target.createTarget", params{"url": address}); err != nil {
			t.Errorf("%q: want it made, got %v", address, err)
		}
	}

	secret := filepath.Join(tempHome(t), "secret.txt")
	if err := os.WriteFile(secret, []byte("TOPSECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"file://" + secret, "chrome://version/", "view-source:" + site.URL, "devtools://devtools/bundled/inspector.html"} {
		if got := string(a.page.Eval("window.open('" + address + "') === null")); got != "true" {
			t.Errorf("window.open of %s: want null, got %s", address, got)
		}
		a.page.Eval("location = '" + address + "'; 1")
		if _, err := a.CallErr(a.page.Session, "Network.loadNetworkResource", params{"frameId": a.page.TargetID, "url": address, "options": params{"disableCache": true, "includeCredentials": false}}); err == nil {
			t.Errorf("loadNetworkResource of %s: want an error", address)
		}
	}

	// A file that is dropped is read by the page, or shown in a tab that is nobody's.
	before := len(pages(t, a.Client))
	for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
		a.Call(a.page.Session, "Input.dispatchDragEvent", params{"type": kind, "x": 50, "y": 50,
			"data": params{"items": []any{}, "files": []string{secret}, "dragOperationsMask": 1}})
	}
	native := m.dialBrowser(t)
	shown := func() bool {
		return slices.ContainsFunc(targets(t, native, nil), func(each target) bool { return each.URL == "file://"+secret })
	}
	eventually(t, 10*time.Second, "tab with the dropped file", shown)
	if got := len(pages(t, a.Client)); got != before {
		t.Errorf("the client's tabs after the drop: want still %d, got %d", before, got)
	}
	// A script on the New Tab page gets nowhere else in Chrome.
	first := a.NewPage("about:blank")
	first.Navigate("chrome://new-tab-page/")
	if got := string(first.Eval("open('chrome://version/') !== null")); got != "true" {
		t.Fatalf("window.open on the New Tab page: want a window, got %s: is there a rule to keep?", got)
	}
	eventually(t, 10*time.Second, "end of the tab that the New Tab page opened", func() bool {
		return strings.Contains(m.stderr.String(), "got from the New Tab page to a chrome: address") &&
			!slices.ContainsFunc(targets(t, native, nil), func(each target) bool { return each.URL == "chrome://version/" })
	})
	for _, each := range targets(t, a.Client, everything) {
		if each.Type != "iframe" && isClosed(each.URL) { // the New Tab page has frames of Chrome's own
			t.Errorf("the client has %s at %s", each.Type, each.URL)
		}
	}
	a.Go(first.Session, "Runtime.evaluate", params{"expression": "location = 'chrome://settings/'"})
	a.Await(func(e proxytest.Msg) bool {
		return e.Method == "Target.detachedFromTarget" && e.Param("sessionId") == first.Session
	})
}

// A scheme is opened alone, a policy file holds clients to what it says, and
// the audit has it all.
func TestPolicyFile(t *testing.T) {
	t.Parallel()
	dir := tempHome(t)
	uploads := filepath.Join(dir, "uploads")
	if err := os.Mkdir(uploads, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret.txt", "uploads/good.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy, audit := filepath.Join(dir, "policy.json"), filepath.Join(dir, "audit.log")
	rules := `{"upload_roots":["` + uploads + `"],"rules":[{"clients":["reader-*"],"refuse":["Input.*"]},{"clients":["*"],"allow":["Browser.setDockTile"]}]}`
	if err := os.WriteFile(policy, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	m := serve(t, "--policy", policy, "--audit", audit, "--allow-scheme", "view-source")
	c := m.dial(t, "reader-1")
	source := c.NewPage("view-source:about:blank")
	for address, want := range map[string]string{"file:///etc/hostname": "--allow-scheme file", "view-source:file:///etc/hostname": "--allow-scheme file"} {
		if _, err := c.CallErr(source.Session, "Page.navigate", params{"url": address}); err == nil || !strings.Contains(err.Message, want) {
			t.Errorf("%s: want an error with %q, got %v", address, want, err)
		}
	}
	if _, err := c.CallErr(source.Session, "Input.insertText", params{"text": "a"}); err == nil || err.Code != -32000 || !strings.Contains(err.Message, "rule 1 of "+policy) {
		t.Errorf("Input.insertText: want it refused by rule 1, got %v", err)
	}
	p := c.NewPage("about:blank")
	p.Navigate("data:text/html,<input type=file>")
	upload := func(file string) (string, *proxytest.Error) {
		var input struct{ Result struct{ ObjectID string } }
		decode(t, p.Call("Runtime.evaluate", params{"expression": "document.querySelector('input')"}), &input)
		if _, err := c.CallErr(p.Session, "DOM.setFileInputFiles", params{"files": []string{file}, "objectId": input.Result.ObjectID}); err != nil {
			return "", err
		}
		return text(t, p.Eval("document.querySelector('input').files[0].text()")), nil
	}
	if got, err := upload(filepath.Join(uploads, "good.txt")); err != nil || got != "text of uploads/good.txt" {
		t.Errorf("upload from the root: %q, %v", got, err)
	}
	for _, file := range []string{filepath.Join(dir, "secret.txt"), uploads + "/../secret.txt", "secret.txt"} {
		if _, err := upload(file); err == nil || !strings.Contains(err.Message, "upload root of "+policy) {
			t.Errorf("upload of %s: want it refused, got %v", file, err)
		}
	}
	m.stop(t)
	raw, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"client":"reader-1","method":"Page.navigate","target":"` + source.TargetID + `","decision":"refused","why":"scheme"}`,
		`"client":"reader-1","method":"Input.insertText","target":"` + source.TargetID + `","decision":"refused","why":"rule"}`,
		`"method":"DOM.setFileInputFiles","target":"` + p.TargetID + `","decision":"refused","why":"upload"}`,
		`"method":"DOM.setFileInputFiles","target":"` + p.TargetID + `","decision":"allowed"}`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the audit lacks %s; it has\n%s", want, raw)
		}
	}
	if strings.Contains(string(raw), "secret") || strings.Contains(string(raw), "good.txt") {
		t.Errorf("the audit has params:\n%s", raw)
	}
}

// What is wrong with the files is said at start.
func TestPolicyFlagFaults(t *testing.T) {
	dir := tempHome(t)
	bad := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(bad, []byte("{\n\"rule\":[]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string][]string{
		`line 2: json: unknown field "rule"`: {"--policy", bad},
		"no such file":                       {"--policy", filepath.Join(dir, "none.json")},
		"--audit: open":                      {"--audit", filepath.Join(dir, "none", "audit.log")},
		"--allow-scheme ftp: give one of":    {"--allow-scheme", "ftp"},
	} {
		p := start(t, raceBinary(t), append(serveFlags(dir), flags...)...)
		if code := p.wait(t, 15*time.Second); code == 0 || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("serve %v: want an error with %q, got code %d and %s", flags, want, code, p.stderr.String())
		}
	}
}
