// Command rod is the go-rod scenario. Its Pages() would attach to every tab;
// it follows popups by its WaitOpen.
package main

import (
	"errors"
	"slices"

	"clients"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"
)

type scenario struct {
	site         string
	browser      *rod.Browser
	page, second *rod.Page
}

func main() {
	endpoint, site := clients.Arguments()
	s := &scenario{site: site, browser: rod.New().ControlURL(endpoint)}
	clients.Step("connect", s.connect)
	clients.Step("new page", s.newPage)
	clients.Step("goto", func() (any, error) {
		if err := s.open("/form"); err != nil {
			return nil, err
		}
		return s.eval(`() => document.title`)
	})
	clients.Step("evaluate", func() (any, error) { return s.eval(`() => [6 * 7, location.href]`) })
	clients.Step("click", func() (any, error) {
		if err := s.click("#count"); err != nil {
			return nil, err
		}
		return s.eval(`() => document.querySelector('#count').textContent`)
	})
	clients.Step("type", s.typeText)
	clients.Step("popup", func() (any, error) { return s.popup("#open") })
	clients.Step("noopener popup", func() (any, error) { return s.popup("#noopener") })
	// It does not reach a frame of another site: Element.Frame panics, and
	// PageFromTarget wants to activate the target, which Chrome refuses.
	clients.Skip("iframe")
	clients.Step("worker", s.worker)
	clients.Step("dialog", s.dialog)
	clients.Step("screenshot", s.screenshot)
	clients.Step("second page", s.secondPage)
	clients.Step("background screenshot", s.screenshot)
	clients.Step("close page", s.closePage)
	clients.Step("disconnect", s.disconnect)
}

func (s *scenario) connect() (any, error) {
	if err := s.browser.Connect(); err != nil {
		return nil, err
	}
	version, err := s.browser.Version()
	if err != nil {
		return nil, err
	}
	return version.ProtocolVersion, nil
}

func (s *scenario) newPage() (any, error) {
	var err error
	if s.page, err = s.browser.Page(proto.TargetCreateTarget{URL: "about:blank"}); err != nil {
		return nil, err
	}
	if _, err = s.page.EvalOnNewDocument(`window.init = true`); err != nil {
		return nil, err
	}
	return s.urls()
}

func (s *scenario) urls() ([]string, error) {
	pages, err := s.browser.Pages()
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, page := range pages {
		info, err := page.Info()
		if err != nil {
			return nil, err
		}
		urls = append(urls, info.URL)
	}
	slices.Sort(urls)
	return urls, nil
}

func (s *scenario) open(path string) error {
	wait := s.page.WaitNavigation(proto.PageLifecycleEventNameLoad)
	if err := s.page.Navigate(s.site + path); err != nil {
		return err
	}
	wait()
	return nil
}

func (s *scenario) eval(js string) (any, error) { return value(s.page.Eval(js)) }

func value(object *proto.RuntimeRemoteObject, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object.Value.Val(), nil
}

func (s *scenario) click(selector string) error {
	element, err := s.page.Element(selector)
	if err != nil {
		return err
	}
	return element.Click(proto.InputMouseButtonLeft, 1)
}

func (s *scenario) typeText() (any, error) {
	element, err := s.page.Element("#name")
	if err != nil {
		return nil, err
	}
	var keys []input.Key
	for _, letter := range "cdpmux" {
		keys = append(keys, input.Key(letter))
	}
	if err := element.Type(keys...); err != nil {
		return nil, err
	}
	return s.eval(`() => document.querySelector('#name').value`)
}

func (s *scenario) popup(button string) (any, error) {
	if err := s.open("/popup"); err != nil {
		return nil, err
	}
	opened := s.page.WaitOpen()
	if err := s.click(button); err != nil {
		return nil, err
	}
	popup, err := opened()
	if err != nil {
		return nil, err
	}
	if err := popup.WaitLoad(); err != nil {
		return nil, err
	}
	got, err := value(popup.Eval(`() => [location.href, !!opener]`))
	return got, errors.Join(err, popup.Close())
}

func (s *scenario) worker() (any, error) {
	if err := s.open("/worker"); err != nil {
		return nil, err
	}
	if err := s.page.Wait(rod.Eval(`() => window.ready`)); err != nil {
		return nil, err
	}
	return s.eval(`() => window.ready`)
}

func (s *scenario) dialog() (any, error) {
	if err := s.open("/form"); err != nil {
		return nil, err
	}
	wait, handle := s.page.HandleDialog()
	clicked := make(chan error, 1)
	go func() { clicked <- s.click("#ask") }()
	message := wait().Message
	if err := errors.Join(handle(&proto.PageHandleJavaScriptDialog{Accept: true}), <-clicked); err != nil {
		return nil, err
	}
	answer, err := s.eval(`() => document.querySelector('#answer').textContent`)
	return []any{message, answer}, err
}

func (s *scenario) screenshot() (any, error) {
	return clients.Size(s.page.Screenshot(false, nil))
}

func (s *scenario) secondPage() (any, error) {
	var err error
	if s.second, err = s.browser.Page(proto.TargetCreateTarget{URL: s.site + "/title?t=second"}); err != nil {
		return nil, err
	}
	if err := s.second.WaitLoad(); err != nil {
		return nil, err
	}
	if _, err := s.second.Activate(); err != nil {
		return nil, err
	}
	return s.urls()
}

func (s *scenario) closePage() (any, error) {
	if err := s.second.Close(); err != nil {
		return nil, err
	}
	return s.urls()
}

// disconnect leaves the page open: Browser.Close would close the browser.
func (s *scenario) disconnect() (any, error) {
	return nil, s.page.Close()
}
