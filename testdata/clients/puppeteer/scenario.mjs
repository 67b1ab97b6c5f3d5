// Puppeteer. It cannot prepare a popup before the popup's own scripts run.
import puppeteer from "puppeteer-core";
import { endpoint, site, step, size } from "../steps.mjs";

let browser, page, second;
const urls = async () => (await browser.pages()).map((page) => page.url()).sort();

await step("connect", async () => {
  browser = await puppeteer.connect({ browserWSEndpoint: endpoint, defaultViewport: null });
  return [(await browser.version()).split(".")[0], browser.browserContexts().length];
});
await step("new page", async () => {
  page = await browser.newPage();
  await page.evaluateOnNewDocument(() => { window.init = true; });
  return page.url();
});
await step("goto", async () => {
  const response = await page.goto(site + "/form");
  return [response.status(), await page.title()];
});
await step("evaluate", () => page.evaluate(() => [6 * 7, location.href]));
await step("click", async () => {
  await page.click("#count");
  return page.$eval("#count", (button) => button.textContent);
});
await step("type", async () => {
  await page.type("#name", "cdpmux");
  return page.$eval("#name", (input) => input.value);
});
for (const [name, button] of [["popup", "#open"], ["noopener popup", "#noopener"]]) {
  await step(name, async () => {
    await page.goto(site + "/popup");
    const [popup] = await Promise.all([
      browser.waitForTarget((target) => target.url() === site + "/plain").then((target) => target.page()),
      page.click(button),
    ]);
    await popup.waitForSelector("h1");
    const got = [popup.url(), (await popup.target().opener()) === page.target()];
    await popup.close();
    return got;
  });
}
await step("iframe", async () => {
  await page.goto(site + "/iframe");
  const frame = await page.waitForFrame((frame) => frame !== page.mainFrame() && frame.url().endsWith("/plain"));
  const heading = await frame.waitForSelector("h1");
  return [frame.url(), await heading.evaluate((h1) => h1.textContent), await frame.evaluate(() => window.early)];
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
  return [message, await page.$eval("#answer", (answer) => answer.textContent)];
});
await step("screenshot", async () => size(Buffer.from(await page.screenshot())));
await step("second page", async () => {
  second = await browser.newPage();
  await second.goto(site + "/title?t=second");
  await second.bringToFront();
  return [await second.title(), await urls()];
});
await step("background screenshot", async () => size(Buffer.from(await page.screenshot())));
await step("close page", async () => {
  await second.close();
  return urls();
});
await step("disconnect", async () => {
  await page.close();
  await browser.disconnect();
  return browser.connected;
});
