// Downloads files by Playwright: says when it is ready, waits for a line on
// stdin, and prints for each file, as JSON, a list of the paths at which it
// then is: by path() and by saveAs(). The first goes with the connection, which
// stays until stdin ends.
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [, , endpoint, start, ...files] = process.argv;

const browser = await chromium.connectOverCDP(endpoint);
const page = await browser.contexts()[0].newPage();
console.log("ready");
await once(process.stdin, "data");
for (const [i, file] of files.entries()) {
  if (i % 8 === 0) await page.goto(start); // Chrome holds the eleventh download of one page
  await page.locator("#file").evaluate((link, url) => { link.href = url; }, file);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#file")]);
  const copy = join(tmpdir(), "copies", String(i));
  await download.saveAs(copy);
  console.log(JSON.stringify([await download.path(), copy]));
}
await once(process.stdin, "end");
await browser.close();
