// Downloads files by Puppeteer, which leaves it to CDP where they go: says when
// it is ready, waits for a line on stdin, and prints for each file, as JSON, a
// list of the path at which it then is.
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import puppeteer from "puppeteer-core";

const [, , endpoint, start, ...files] = process.argv;

const browser = await puppeteer.connect({ browserWSEndpoint: endpoint, defaultViewport: null });
const page = await browser.newPage();
const root = await browser.target().createCDPSession();
const downloadPath = await mkdtemp(join(tmpdir(), "puppeteer-"));
await root.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath, eventsEnabled: true });

const end = () => new Promise((resolve) => {
  root.on("Browser.downloadProgress", function heard(event) {
    if (event.state === "inProgress") return;
    root.off("Browser.downloadProgress", heard);
    resolve(event);
  });
});
console.log("ready");
await once(process.stdin, "data");
for (const [i, file] of files.entries()) {
  if (i % 8 === 0) await page.goto(start); // Chrome holds the eleventh download of one page
  await page.$eval("#file", (link, url) => { link.href = url; }, file);
  const [{ state, filePath }] = await Promise.all([end(), page.click("#file")]);
  if (state !== "completed" || dirname(filePath) !== downloadPath) throw new Error(`${file}: ${state} ${filePath}`);
  console.log(JSON.stringify([filePath]));
}
await browser.disconnect();
