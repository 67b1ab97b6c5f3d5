// One JSON line per step of steps.txt on stdout: {"step": name, "ok": true,
// "got": …}, where a step this client has no means for got "-", or {"step":
// name, "ok": false, "error": …}. The first failing step ends the run.

const [, , endpoint, site] = process.argv;
if (!endpoint || !site) {
  console.error("usage: node scenario.mjs ENDPOINT SITE_URL");
  process.exit(2);
}
export { endpoint, site };

const STEP_LIMIT_MS = 20_000;

// step runs one step. What run returns is printed as got; run may be left out: then it is "-".
export async function step(name, run = () => "-") {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result within ${STEP_LIMIT_MS} ms`)), STEP_LIMIT_MS);
  });
  try {
    const got = await Promise.race([run(), limit]);
    console.log(JSON.stringify({ step: name, ok: true, got }));
  } catch (error) {
    console.log(JSON.stringify({ step: name, ok: false, error: String(error?.stack ?? error) }));
    process.exit(1);
  } finally {
    clearTimeout(timer);
  }
}

// until polls for what no event announces.
export async function until(what, condition) {
  for (const end = Date.now() + STEP_LIMIT_MS; Date.now() < end; ) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`no ${what}`);
}

// size reads width and height from a PNG's header.
export function size(png) {
  const magic = png.subarray(0, 8).toString("hex");
  if (magic !== "89504e470d0a1a0a") throw new Error(`not a PNG: it starts with ${magic}`);
  return [png.readUInt32BE(16), png.readUInt32BE(20)];
}
