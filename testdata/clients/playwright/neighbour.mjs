// A busy Playwright: opens pages with init scripts and popups until its stdin
// ends, then prints how many rounds it did. Whatever goes wrong ends it.
import { chromium } from "playwright-core";

const [, , endpoint, site] = process.argv;
const url = site + "/title?t=neighbour-playwright";

let stopped = false;
process.stdin.on("end", () => { stopped = true; }).resume();

const browser = await chromium.connectOverCDP(endpoint);
const context = browser.contexts()[0];
await context.addInitScript(() => { window.init = true; });
const page = await context.newPage();
console.log("works");

let rounds = 0;
while (!stopped) {
  await page.goto(url);
  const [popup] = await Promise.all([
    context.waitForEvent("page"),
    page.evaluate((url) => void window.open(url), url),
  ]);
  await popup.waitForLoadState();
  if (!(await popup.evaluate(() => window.init))) throw new Error("a popup without the init script");
  if (context.pages().length !== 2) throw new Error(`pages: want 2, got ${context.pages().map((page) => page.url())}`);
  await popup.close();
  await page.waitForTimeout(500);
  rounds++;
}
console.log(rounds);
await browser.close();
