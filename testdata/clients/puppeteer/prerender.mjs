// Puppeteer follows a prerendered page into its tab: a line per attempt. It
// gives itself 100 ms for the swap, and on a busy machine loses the frame.
import puppeteer from "puppeteer-core";
import { endpoint, site } from "../steps.mjs";

const attempts = Number(process.argv[4] ?? 1);
const browser = await puppeteer.connect({ browserWSEndpoint: endpoint, defaultViewport: null });

async function activate() {
  const page = await browser.newPage();
  try {
    // The page's own session: with another one on the page Chrome does not activate.
    const session = page._client();
    const ready = new Promise((done) => {
      session.on("Preload.prerenderStatusUpdated", (event) => event.status === "Ready" && done());
    });
    await session.send("Preload.enable");
    await page.goto(site + "/prerender");
    await ready;
    await Promise.all([page.waitForNavigation(), page.click("#link")]);
    const heading = await page.$eval("h1", (h1) => h1.textContent);
    const activated = await page.evaluate(() => performance.getEntriesByType("navigation")[0].activationStart > 0);
    return heading === "plain" && activated ? "followed" : `at ${heading}, activated: ${activated}`;
  } catch (error) {
    return /frame was detached|detached Frame/i.test(error) ? "too late" : String(error.stack ?? error);
  } finally {
    await page.close().catch(() => {}); // of a lost frame it cannot be closed
  }
}

for (let i = 0; i < attempts; i++) console.log(await activate());
await browser.disconnect();
