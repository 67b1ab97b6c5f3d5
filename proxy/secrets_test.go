package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"cdpmux/proxy/proxytest"
	"cdpmux/routing"
)

// logged keeps a whole log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestLogKeepsSecrets runs a busy session full of secrets, ends connections in
// every way that a client can bring about, and looks for them in the whole log.
func TestLogKeepsSecrets(t *testing.T) {
	const secret = "S3CR3T"
	const token = secret + "-admin-token"
	log := &logged{}
	s := startServer(t, func(s *testServer) {
		s.log = zerolog.New(log).Level(zerolog.TraceLevel)
		s.cfg.AdminToken, s.cfg.MaxClients = token, 0
		s.router = routing.New(routing.Config{TabCap: 2})
	})
	for _, header := range []http.Header{
		{"Authorization": {"Bearer " + token}},
		{"Authorization": {"Bearer " + secret + "-wrong"}},
		{"Cookie": {"sid=" + secret}, "Origin": {"https://" + secret + ".example"}},
		{"Referer": {"https://x/?t=" + secret}, "User-Agent": {secret}, "Sec-Fetch-Site": {"cross-site"}},
	} {
		for _, path := range []string{"/status", "/json/list", "/json/version?t=" + secret, "/v1/browser", "/nowhere/" + secret, "/client-a.b?" + secret} {
			req, err := http.NewRequest(http.MethodGet, "http://"+s.addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = header
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	s.do(t, http.MethodPut, "/client-http/json/new?https://shop.example/?token="+secret)
	s.do(t, http.MethodPost, "/v1/clients/"+secret+".x/close")

	c := proxytest.Dial(t, s.ws("/client-busy?token="+secret))
	page := c.NewPage("https://user:" + secret + "@shop.example/?token=" + secret)
	page.Navigate("https://shop.example/login?token=" + secret + "#" + secret)
	page.Call("Runtime.evaluate", map[string]any{"expression": "'" + secret + "'"})
	c.CallErr("", "Storage.setCookies", map[string]any{"cookies": []any{map[string]any{"name": "sid", "value": secret, "url": "https://shop.example/"}}})
	c.CallErr(page.Session, "Fetch.continueWithAuth", map[string]any{"authChallengeResponse": map[string]any{"password": secret}})
	c.CallErr("", "Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": "/" + secret})
	c.CallErr("", "No.method", map[string]any{"secret": secret})
	c.CallErr(secret, "Page.enable", nil)
	for _, bad := range []string{`{"id":1,"method":"` + secret, `{"id":"` + secret + `"}`, secret, `[]`, `{"id":2,"method":7,"params":"` + secret + `"}`} {
		c.Send(bad)
	}
	c.Call("", "Browser.getVersion", nil) // what came before it was routed

	crowd := proxytest.Dial(t, s.ws("/client-crowd"))
	for range 3 {
		crowd.NewPage("https://crowd.example/way?token=" + secret)
	}
	ends := map[string]func(c *proxytest.Client){
		"binary_frame":   func(c *proxytest.Client) { c.SendBinary([]byte(secret)) },
		"protocol_error": func(c *proxytest.Client) { c.SendBytes(append([]byte{0xff, 0x86, 1, 2, 3, 4}, secret...)) },
		"client_left":    func(c *proxytest.Client) { c.Close() },
		"browser_close":  func(c *proxytest.Client) { c.Go("", "Browser.close", map[string]string{"why": secret}) },
		"target_closed": func(c *proxytest.Client) {
			p := c.NewPage("https://x/?" + secret)
			proxytest.Dial(t, s.ws("/client-"+"target_closed"+"/devtools/page/"+p.TargetID)).Call("", "Page.enable", nil)
			c.Call("", "Target.closeTarget", map[string]string{"targetId": p.TargetID})
		},
		"taken_over": func(*proxytest.Client) { proxytest.Dial(t, s.ws("/client-taken_over?"+secret)) },
	}
	for reason, end := range ends {
		c := proxytest.Dial(t, s.ws("/client-"+reason))
		c.Call("", "Browser.getVersion", nil)
		end(c)
	}
	await(t, "the line of every end", func() bool {
		text := log.String()
		for reason := range ends {
			if !strings.Contains(text, `"reason":"`+reason+`"`) {
				return false
			}
		}
		return strings.Contains(text, "--tab-cap): closing ")
	})
	s.browser.Drop()
	await(t, "the line of the lost browser", func() bool { return strings.Contains(log.String(), "browser connection lost") })
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for _, line := range lines {
		if strings.Contains(line, secret) || strings.Contains(line, "shop.example") {
			t.Errorf("in the log: %s", line)
		}
		var entry struct{ Level, Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level == "" || entry.Message == "" {
			t.Errorf("no line of the log: %q, %v", line, err)
		}
	}
	if len(lines) < len(ends) {
		t.Errorf("only %d lines were looked at", len(lines))
	}
}
