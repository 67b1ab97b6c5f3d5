// agent-browser: each command by its program, which asks a daemon.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { endpoint, site, step, size, until } from "../steps.mjs";

const bin = `node_modules/agent-browser/bin/agent-browser-${process.platform}-${process.arch}`;
const home = process.env.HOME;
const env = { ...process.env, AGENT_BROWSER_SOCKET_DIR: join(home, "ab") };

// run runs one command and returns the data that it answers with.
const run = async (...args) => {
  const { stdout } = await promisify(execFile)(bin, [...args, "--json", "--cdp", endpoint], { env });
  const { success, data, error } = JSON.parse(stdout);
  if (!success) throw new Error(`${args.join(" ")}: ${error}`);
  return data;
};
const evaluate = async (code) => (await run("eval", code)).result;
const tabs = async () => (await run("tab", "list")).tabs;
const urls = async () => (await tabs()).map((tab) => tab.url).sort();
const screenshot = async () => {
  const { path } = await run("screenshot", join(home, "shot.png"));
  return size(readFileSync(path));
};

await step("connect", async () => {
  await run("connect", endpoint);
  return (await tabs()).length; // it opens one when there is none
});
await step("new page", async () => {
  await run("tab", "new");
  return (await tabs()).length;
});
await step("goto", async () => {
  const { title, url } = await run("open", site + "/form");
  return [title, url];
});
await step("evaluate", () => evaluate("[6 * 7, location.href]"));
await step("click", async () => {
  await run("click", "#count");
  return (await run("get", "text", "#count")).text;
});
await step("type", async () => {
  await run("type", "#name", "cdpmux");
  return (await run("get", "value", "#name")).value;
});
for (const [name, button] of [["popup", "#open"], ["noopener popup", "#noopener"]]) {
  await step(name, async () => {
    await run("open", site + "/popup");
    await run("click", button);
    // The popup becomes the current tab.
    await until("popup", async () => (await evaluate("location.pathname")) === "/plain");
    const got = await evaluate("[location.href, !!opener]");
    await run("tab", "close");
    return [got, await urls()];
  });
}
await step("iframe", async () => {
  await run("open", site + "/iframe");
  return until("heading of the frame", async () => /heading "plain"/.exec((await run("snapshot")).snapshot)?.[0]);
});
await step("worker", async () => {
  await run("open", site + "/worker");
  return until("answer of the worker", () => evaluate("window.ready"));
});
// Its click on a button that opens a confirm() never returns, and all later commands wait for it.
await step("dialog");
await step("screenshot", screenshot);
await step("second page", async () => {
  await run("tab", "new", site + "/title?t=second");
  return urls();
});
await step("background screenshot", async () => {
  const first = (await tabs()).find((tab) => tab.url.endsWith("/worker"));
  await run("tab", first.tabId ?? String(first.index));
  return [await evaluate("location.href"), await screenshot()];
});
await step("close page", async () => {
  const second = (await tabs()).find((tab) => tab.url.endsWith("second"));
  await run("tab", "close", second.tabId ?? String(second.index));
  return urls();
});
await step("disconnect", async () => {
  await run("close");
});
