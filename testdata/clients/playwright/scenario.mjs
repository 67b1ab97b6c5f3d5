// Playwright, connected over CDP by a WebSocket or an HTTP address.
import { chromium } from "playwright-core";
import { endpoint, site, step, size } from "../steps.mjs";

let browser, context, page, second;

await step("connect", async () => {
  browser = await chromium.connectOverCDP(endpoint, { timeout: 15_000 });
  context = browser.contexts()[0];
  await context.addInitScript(() => { window.init = true; });
  return [browser.version().split(".")[0], browser.contexts().length];
});
await step("new page", async () => {
  page = await context.newPage();
  return page.url();
});
await step("goto", async () => {
  const response = await page.goto(site + "/form");
  return [response.status(), await page.title()];
});
await step("evaluate", () => page.evaluate(() => [6 * 7, location.href]));
await step("click", async () => {
  await page.click("#count");
  return page.textContent("#count");
});
await step("type", async () => {
  await page.type("#name", "cdpmux");
  return page.inputValue("#name");
});
for (const [name, button] of [["popup", "#open"], ["noopener popup", "#noopener"]]) {
  await step(name, async () => {
    await page.goto(site + "/popup");
    const [popup] = await Promise.all([context.waitForEvent("page"), page.click(button)]);
    await popup.waitForLoadState();
    const got = [popup.url(), await popup.evaluate(() => window.early), (await popup.opener()) === page];
    await popup.close();
    return got;
  });
}
await step("iframe", async () => {
  await page.goto(site + "/iframe");
  const frame = page.frames()[1];
  return [frame.url(), await frame.textContent("h1"), await frame.evaluate(() => window.early)];
});
await step("worker", async () => {
  await page.goto(site + "/worker");
  await page.waitForFunction(() => window.ready);
  return page.workers().map((worker) => worker.url());
});
await step("dialog", async () => {
  await page.goto(site + "/form");
  let message;
  page.once("dialog", (dialog) => {
    message = dialog.message();
    dialog.accept();
  });
  await page.click("#ask");
  return [message, await page.textContent("#answer")];
});
await step("screenshot", async () => size(await page.screenshot()));
await step("second page", async () => {
  second = await context.newPage();
  await second.goto(site + "/title?t=second");
  await second.bringToFront();
  return [await second.title(), context.pages().map((page) => page.url())];
});
await step("background screenshot", async () => size(await page.screenshot()));
await step("close page", async () => {
  await second.close();
  return context.pages().map((page) => page.url());
});
await step("disconnect", async () => {
  await page.close();
  await browser.close();
  return browser.isConnected();
});
