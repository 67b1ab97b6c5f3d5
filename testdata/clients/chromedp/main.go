// Command chromedp is the chromedp scenario: a context for each tab; popups by
// WaitNewTarget.
package main

import (
	"context"
	"slices"

	"clients"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
)

type scenario struct {
	site     string
	root     context.Context // of the connection; it has a blank tab of its own
	first    context.Context
	second   context.Context
	closeAll context.CancelFunc
}

func main() {
	endpoint, site := clients.Arguments()
	allocator, closeAll := remote.NewAllocator(context.Background(), endpoint)
	s := &scenario{site: site, closeAll: closeAll}
	s.root, _ = chromedp.NewContext(allocator)
	clients.Step("connect", s.connect)
	clients.Step("new page", s.newPage)
	clients.Step("goto", func() (any, error) {
		if err := s.open("/form"); err != nil {
			return nil, err
		}
		return chromedp.Run(s.first, chromedp.Title())
	})
	clients.Step("evaluate", func() (any, error) { return eval(s.first, `[6 * 7, location.href]`) })
	clients.Step("click", func() (any, error) {
		if err := s.click("#count"); err != nil {
			return nil, err
		}
		return chromedp.Run(s.first, chromedp.Text(chromedp.CSS("#count")))
	})
	clients.Step("type", func() (any, error) {
		if err := chromedp.Do(s.first, chromedp.SendKeys(chromedp.CSS("#name"), "cdpmux")); err != nil {
			return nil, err
		}
		return chromedp.Run(s.first, chromedp.Value(chromedp.CSS("#name")))
	})
	clients.Step("popup", func() (any, error) { return s.popup("#open") })
	clients.Step("noopener popup", func() (any, error) { return s.popup("#noopener") })
	clients.Step("iframe", s.iframe)
	clients.Step("worker", func() (any, error) {
		if err := s.open("/worker"); err != nil {
			return nil, err
		}
		return chromedp.Run(s.first, chromedp.Poll[bool]("window.ready"))
	})
	clients.Step("dialog", s.dialog)
	clients.Step("screenshot", s.screenshot)
	clients.Step("second page", s.secondPage)
	clients.Step("background screenshot", s.screenshot)
	clients.Step("close page", s.closePage)
	clients.Step("disconnect", s.disconnect)
}

func eval(tab context.Context, expression string) (any, error) {
	return chromedp.Run(tab, chromedp.Evaluate[any](expression))
}

func (s *scenario) connect() (any, error) {
	if err := chromedp.Do(s.root); err != nil {
		return nil, err
	}
	version, err := chromedp.Call(s.root, browser.GetVersion, struct{}{})
	return version.ProtocolVersion, err
}

func (s *scenario) newPage() (any, error) {
	s.first, _ = chromedp.NewContext(s.root)
	if err := chromedp.Do(s.first); err != nil {
		return nil, err
	}
	init := page.AddScriptToEvaluateOnNewDocumentParams{Source: `window.init = true`}
	if _, err := chromedp.Call(s.first, page.AddScriptToEvaluateOnNewDocument, init); err != nil {
		return nil, err
	}
	return s.urls()
}

func (s *scenario) urls() ([]string, error) {
	targets, err := chromedp.Targets(s.root)
	var urls []string
	for _, each := range targets {
		if each.Type == "page" {
			urls = append(urls, each.URL)
		}
	}
	slices.Sort(urls)
	return urls, err
}

func (s *scenario) open(path string) error {
	return chromedp.Do(s.first, chromedp.Navigate(s.site+path))
}

func (s *scenario) click(selector string) error {
	return chromedp.Do(s.first, chromedp.Click(chromedp.CSS(selector)))
}

func (s *scenario) popup(button string) (any, error) {
	if err := s.open("/popup"); err != nil {
		return nil, err
	}
	opened := chromedp.WaitNewTarget(s.first, func(info *target.Info) bool { return info.URL == s.site+"/plain" })
	if err := s.click(button); err != nil {
		return nil, err
	}
	popup, closePopup := chromedp.NewContext(s.first, chromedp.WithTargetID(<-opened))
	defer closePopup()
	if err := chromedp.Do(popup, chromedp.WaitVisible(chromedp.CSS("h1"))); err != nil {
		return nil, err
	}
	got, err := eval(popup, `[location.href, !!opener]`)
	if err != nil {
		return nil, err
	}
	return got, chromedp.Cancel(popup)
}

func (s *scenario) iframe() (any, error) {
	if err := s.open("/iframe"); err != nil {
		return nil, err
	}
	targets, err := chromedp.Targets(s.first)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(targets, func(each *target.Info) bool { return each.Type == "iframe" })
	if i < 0 {
		return "no target", nil
	}
	frame, leave := chromedp.NewContext(s.first, chromedp.WithTargetID(targets[i].TargetID), chromedp.WithDetachOnCancel())
	defer leave()
	return eval(frame, `[location.href, document.querySelector('h1').textContent]`)
}

func (s *scenario) dialog() (any, error) {
	if err := s.open("/form"); err != nil {
		return nil, err
	}
	var message string
	opening := chromedp.Events(s.first, page.JavascriptDialogOpening)
	handled := make(chan error, 1)
	go func() {
		for event, err := range opening {
			if err == nil {
				message = event.Message
				_, err = chromedp.Call(s.first, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
			}
			handled <- err
			return
		}
	}()
	if err := s.click("#ask"); err != nil {
		return nil, err
	}
	if err := <-handled; err != nil {
		return nil, err
	}
	answer, err := chromedp.Run(s.first, chromedp.Text(chromedp.CSS("#answer")))
	return []any{message, answer}, err
}

func (s *scenario) screenshot() (any, error) {
	return clients.Size(chromedp.Run(s.first, chromedp.CaptureScreenshot()))
}

func (s *scenario) secondPage() (any, error) {
	s.second, _ = chromedp.NewContext(s.root)
	if err := chromedp.Do(s.second, chromedp.Navigate(s.site+"/title?t=second")); err != nil {
		return nil, err
	}
	if _, err := chromedp.Call(s.second, page.BringToFront, struct{}{}); err != nil {
		return nil, err
	}
	return s.urls()
}

func (s *scenario) closePage() (any, error) {
	if err := chromedp.Cancel(s.second); err != nil {
		return nil, err
	}
	return s.urls()
}

// disconnect closes the remaining pages, and then the connection.
func (s *scenario) disconnect() (any, error) {
	s.closeAll()
	chromedp.FromContext(s.root).Allocator.Wait()
	return nil, nil
}
