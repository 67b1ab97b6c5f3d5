// chrome-remote-interface: the pages by page sockets, as it is mostly used;
// the popups by the browser's socket, whose auto-attach holds them.
import CDP from "chrome-remote-interface";
import { endpoint, site, step, size, until } from "../steps.mjs";

const { hostname, port, pathname } = new URL(endpoint);
const prefix = pathname.startsWith("/devtools/") ? "" : pathname;
// It alters the paths that it takes from the lists once more.
const alterPath = (path) => (path.startsWith(prefix) ? path : prefix + path);
const http = { host: hostname, port, alterPath };

let browser, page, first, second;

const urls = async () =>
  (await CDP.List(http)).filter((target) => target.type === "page").map((target) => target.url).sort();
const goto = async (path) => {
  const loaded = page.Page.loadEventFired();
  const { errorText } = await page.Page.navigate({ url: site + path });
  if (errorText) throw new Error(errorText);
  await loaded;
};
const evaluate = async (expression, send = (method, params) => page.send(method, params)) => {
  const { result } = await send("Runtime.evaluate", { expression, returnByValue: true });
  return result.value;
};
const click = async (selector) => {
  const at = await evaluate(`(({x, y, width, height}) => ({x: x + width / 2, y: y + height / 2}))(
    document.querySelector("${selector}").getBoundingClientRect())`);
  const button = { ...at, button: "left", clickCount: 1 };
  await page.Input.dispatchMouseEvent({ ...button, type: "mousePressed" });
  await page.Input.dispatchMouseEvent({ ...button, type: "mouseReleased" });
};
const screenshot = async () => size(Buffer.from((await page.Page.captureScreenshot()).data, "base64"));

await step("connect", async () => {
  browser = await CDP({ target: endpoint, ...http });
  const { product } = await browser.Browser.getVersion();
  return product.split(".")[0];
});
await step("new page", async () => {
  first = await CDP.New({ ...http, url: "about:blank" });
  page = await CDP({ ...http, target: first });
  await page.Page.enable();
  await page.Page.addScriptToEvaluateOnNewDocument({ source: "window.init = true" });
  return first.url;
});
await step("goto", async () => {
  await goto("/form");
  return evaluate("document.title");
});
await step("evaluate", () => evaluate("[6 * 7, location.href]"));
await step("click", async () => {
  await click("#count");
  return evaluate("document.querySelector('#count').textContent");
});
await step("type", async () => {
  await click("#name");
  for (const text of "cdpmux") {
    await page.Input.dispatchKeyEvent({ type: "keyDown", text });
    await page.Input.dispatchKeyEvent({ type: "keyUp" });
  }
  return evaluate("document.querySelector('#name').value");
});
for (const [name, button] of [["popup", "#open"], ["noopener popup", "#noopener"]]) {
  await step(name, async () => {
    await goto("/popup");
    const attached = [];
    const listen = (event) => attached.push(event);
    browser.on("Target.attachedToTarget", listen);
    await browser.Target.setAutoAttach({ autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
    const clicked = click(button); // the opener waits, too
    const { sessionId, targetInfo, waitingForDebugger } = await until("popup", () =>
      attached.find((event) => event.targetInfo.openerId === first.id));
    const send = (method, params) => browser.send(method, params, sessionId);
    const loaded = new Promise((resolve) => browser.once(`Page.loadEventFired.${sessionId}`, resolve));
    send("Page.enable");
    send("Page.addScriptToEvaluateOnNewDocument", { source: "window.init = true" });
    send("Runtime.runIfWaitingForDebugger");
    await Promise.all([clicked, loaded]);
    const got = [await evaluate("[location.href, window.early, !!opener]", send), waitingForDebugger];
    const detached = new Promise((resolve) => browser.once("Target.detachedFromTarget", resolve));
    await browser.Target.closeTarget({ targetId: targetInfo.targetId });
    await detached;
    browser.off("Target.attachedToTarget", listen);
    await browser.Target.setAutoAttach({ autoAttach: false, waitForDebuggerOnStart: false, flatten: true });
    return got;
  });
}
await step("iframe", async () => {
  await page.Target.setAutoAttach({ autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
  const attached = page.Target.attachedToTarget();
  await goto("/iframe");
  const { sessionId, targetInfo } = await attached;
  const send = (method, params) => page.send(method, params, sessionId);
  return [targetInfo.type, await evaluate("[location.href, document.querySelector('h1').textContent]", send)];
});
await step("worker", async () => {
  const attached = page.Target.attachedToTarget();
  await goto("/worker");
  const { targetInfo } = await attached;
  await until("answer of the worker", () => evaluate("window.ready"));
  return [targetInfo.type, targetInfo.url];
});
await step("dialog", async () => {
  await goto("/form");
  const opening = page.Page.javascriptDialogOpening();
  const clicked = click("#ask");
  const { message } = await opening;
  await page.Page.handleJavaScriptDialog({ accept: true });
  await clicked;
  return [message, await evaluate("document.querySelector('#answer').textContent")];
});
await step("screenshot", screenshot);
await step("second page", async () => {
  second = await CDP.New({ ...http, url: site + "/title?t=second" });
  await CDP.Activate({ ...http, id: second.id });
  await until("title of the second page", async () => (await urls()).some((url) => url.endsWith("second")));
  return urls();
});
await step("background screenshot", screenshot);
await step("close page", async () => {
  await CDP.Close({ ...http, id: second.id });
  await until("end of the second page", async () => !(await urls()).some((url) => url.endsWith("second")));
  return urls();
});
await step("disconnect", async () => {
  const closed = new Promise((resolve) => page.once("disconnect", resolve));
  await CDP.Close({ ...http, id: first.id });
  await closed; // Chrome ends a page's socket with the page
  await browser.close();
});
