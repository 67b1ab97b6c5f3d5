// Downloads files by agent-browser's command for it: says when it is ready,
// waits for a line on stdin, and prints for each file, as JSON, a list of the
// path at which it then is.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const [, , endpoint, start, ...files] = process.argv;
const bin = `node_modules/agent-browser/bin/agent-browser-${process.platform}-${process.arch}`;
const env = { ...process.env, AGENT_BROWSER_SOCKET_DIR: join(tmpdir(), "ab") };

const run = async (...args) => {
  const { stdout } = await promisify(execFile)(bin, [...args, "--json", "--cdp", endpoint], { env });
  const { success, data, error } = JSON.parse(stdout);
  if (!success) throw new Error(`${args.join(" ")}: ${error}`);
  return data;
};

await run("connect", endpoint);
console.log("ready");
await once(process.stdin, "data");
for (const [i, file] of files.entries()) {
  if (i % 8 === 0) await run("open", start); // Chrome holds the eleventh download of one page
  await run("eval", `document.getElementById("file").href = ${JSON.stringify(file)}`);
  const { path } = await run("download", "#file", join(tmpdir(), "ab", `${i}.bin`));
  console.log(JSON.stringify([path]));
}
await run("close");
