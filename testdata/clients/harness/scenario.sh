#!/bin/sh
# browser-harness: its daemon by BU_CDP_WS, driven by its own program, which
# reads Python with the helpers predefined. It has no means for popups of its
# own: they are tabs in its list.
export BU_CDP_WS="$1" SITE="$2" BU_NAME=scenario
export BH_HOME="$HOME/bh" BH_TELEMETRY=0 PYTHONPATH=.. PYTHONDONTWRITEBYTECODE=1
export NO_PROXY=127.0.0.1,localhost

browser-harness <<'PY'
import os
from steps import step, size, until

site = os.environ["SITE"]


def urls():
    return sorted(tab["url"] for tab in list_tabs())


def goto(path):
    goto_url(site + path)
    # The document before may still be the one that answers.
    until("load of " + path, lambda: js("[location.href, document.readyState].join()") == site + path + ",complete")


def click(selector):
    x, y = js(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])(document.querySelector('{selector}').getBoundingClientRect())")
    click_at_xy(x, y)


def new_page():
    global first
    cdp("Page.addScriptToEvaluateOnNewDocument", source="window.init = true")
    first = current_tab()["targetId"]
    return urls()


def form():
    goto("/form")
    return js("document.title.replace(/^\\W+/, '')")  # it marks titles with a horse


def counter():
    click("#count")
    return js("document.querySelector('#count').textContent")


def typing():
    fill_input("#name", "cdpmux")
    return js("document.querySelector('#name').value")


def popup(button):
    def run():
        goto("/popup")
        click(button)
        tab = until("popup", lambda: next((tab for tab in list_tabs() if tab["url"] == site + "/plain"), None))
        switch_tab(tab)
        got = js("[location.href, !!opener]")
        close_tab(tab)
        switch_tab(first)
        return got

    return run


def iframe():
    goto("/iframe")
    frame = until("target of the frame", lambda: iframe_target("/plain"))
    return js("[location.href, document.querySelector('h1').textContent]", target_id=frame)


def worker():
    goto("/worker")
    return until("answer of the worker", lambda: js("window.ready"))


def dialog():
    goto("/form")
    # A click would wait for the dialog to go; a timer does not.
    js("setTimeout(() => document.querySelector('#ask').click())")
    opened = until("dialog", lambda: [e for e in drain_events() if e["method"] == "Page.javascriptDialogOpening"])
    cdp("Page.handleJavaScriptDialog", accept=True)
    return [opened[0]["params"]["message"], until("answer", lambda: js("document.querySelector('#answer').textContent"))]


def screenshot():
    with open(capture_screenshot(), "rb") as shot:
        return size(shot.read())


def second_page():
    global second
    second = new_tab(site + "/title?t=second")
    activate_tab(second)
    return until("url of the second page", lambda: (all := urls()) and any(url.endswith("second") for url in all) and all)


def background_screenshot():
    switch_tab(first)
    return screenshot()


def close_page():
    close_tab(second)
    return until("end of the second page", lambda: (all := urls()) and not any(url.endswith("second") for url in all) and all)


step("connect", lambda: cdp("Browser.getVersion")["product"].split(".")[0])
step("new page", new_page)
step("goto", form)
step("evaluate", lambda: js("[6 * 7, location.href]"))
step("click", counter)
step("type", typing)
step("popup", popup("#open"))
step("noopener popup", popup("#noopener"))
step("iframe", iframe)
step("worker", worker)
step("dialog", dialog)
step("screenshot", screenshot)
step("second page", second_page)
step("background screenshot", background_screenshot)
step("close page", close_page)
PY
status=$?
browser-harness --reload >&2 # ends the daemon
[ $status -eq 0 ] && echo '{"step": "disconnect", "ok": true, "got": null}'
