// chrome-devtools-mcp: the MCP server as a child, its tools called over stdio.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { endpoint, site, step, size, until } from "../steps.mjs";

const main = "node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js";
const server = spawn(
  process.execPath,
  [main, "--wsEndpoint", endpoint, "--no-usage-statistics", "--no-performance-crux"],
  { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS: "1" } },
);
process.on("exit", () => server.kill());

const waiting = new Map();
createInterface({ input: server.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
});
let lastID = 0;
const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const request = (method, params) => {
  const id = ++lastID;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
};
// tool calls one and returns its content.
const tool = async (name, args = {}) => {
  const { result, error } = await request("tools/call", { name, arguments: args });
  if (error || result.isError) throw new Error(`${name}: ${JSON.stringify(error ?? result.content)}`);
  return result.content;
};
const text = async (name, args) => (await tool(name, args)).map((part) => part.text ?? "").join("\n");

// Lines of list_pages: "1: about:blank", or "2: title (http://…) [selected]".
const pages = async () =>
  [...(await text("list_pages")).matchAll(/^(\d+): (?:.*\((\S+)\)|(\S+))/gm)].map(([, id, long, short]) => ({
    pageId: Number(id),
    url: long ?? short,
  }));
const urls = async () => (await pages()).map((page) => page.url);

let pageId, second;
const goto = (path) => text("navigate_page", { pageId, type: "url", url: site + path, initScript: "window.init = true" });
const evaluate = async (code, id = pageId) => {
  const answer = await text("evaluate_script", { pageId: id, function: code });
  return JSON.parse(answer.match(/```json\n([\s\S]*?)\n```/)[1]);
};
// Lines of a snapshot: `uid=1_2 button "confirm"`.
const uid = async (line) => {
  const snapshot = await text("take_snapshot", { pageId });
  const match = snapshot.match(new RegExp(`uid=(\\S+) ${line}`));
  if (!match) throw new Error(`no ${line} in ${snapshot}`);
  return match[1];
};
const click = async (line) => text("click", { pageId, uid: await uid(line) });
const screenshot = async () => {
  const image = (await tool("take_screenshot", { pageId })).find((part) => part.type === "image");
  return size(Buffer.from(image.data, "base64"));
};

await step("connect", async () => {
  const clientInfo = { name: "scenario", version: "1" };
  const { result } = await request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  send({ method: "notifications/initialized" });
  return [result.serverInfo.name, await urls()];
});
await step("new page", async () => {
  await tool("new_page", { url: "about:blank" });
  [{ pageId }] = await pages();
  return urls();
});
await step("goto", async () => {
  await goto("/form");
  return evaluate("() => document.title");
});
await step("evaluate", () => evaluate("() => [6 * 7, location.href]"));
await step("click", async () => {
  await click('button "0"');
  return evaluate("() => document.querySelector('#count').textContent");
});
await step("type", async () => {
  await tool("fill", { pageId, uid: await uid("textbox"), value: "cdpmux" });
  return evaluate("() => document.querySelector('#name').value");
});
for (const [name, button] of [["popup", "window.open"], ["noopener popup", "noopener"]]) {
  await step(name, async () => {
    await goto("/popup");
    await click(`button "${button}"`);
    const popup = await until("popup", async () => (await pages()).find((page) => page.url === site + "/plain"));
    const got = await evaluate("() => [location.href, !!opener]", popup.pageId);
    await tool("close_page", { pageId: popup.pageId });
    return got;
  });
}
await step("iframe", async () => {
  await goto("/iframe");
  await uid('heading "plain"'); // in the frame
  return evaluate("() => frames.length");
});
await step("worker", async () => {
  await goto("/worker");
  return until("answer of the worker", () => evaluate("() => window.ready === true"));
});
await step("dialog", async () => {
  await goto("/form");
  const opened = await click('button "confirm"');
  await tool("handle_dialog", { pageId, action: "accept" });
  return [opened.includes("sure?"), await evaluate("() => document.querySelector('#answer').textContent")];
});
await step("screenshot", screenshot);
await step("second page", async () => {
  await tool("new_page", { url: site + "/title?t=second" });
  second = (await pages()).find((page) => page.url.endsWith("second")).pageId;
  return urls();
});
await step("background screenshot", screenshot);
await step("close page", async () => {
  await tool("close_page", { pageId: second });
  return urls();
});
await step("disconnect", async () => {
  const exited = new Promise((resolve) => server.once("exit", resolve));
  server.stdin.end();
  await exited;
});
