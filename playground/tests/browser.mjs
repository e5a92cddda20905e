// The page in a real browser, opened from a file: browser.mjs <index.html> [folder for pictures]
//
// Exit status 77 where there is no chromium. The browser is driven over a pipe, so no port is open.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [page, pictures] = process.argv.slice(2);
if (spawnSync("chromium", ["--version"]).status !== 0) {
  console.log("skipped: there is no chromium");
  process.exit(77);
}
const home = mkdtempSync(join(tmpdir(), "mrc-playground-"));
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--remote-debugging-pipe", "--window-size=1400,1000", `--user-data-dir=${home}`, "about:blank"];
const browser = spawn("chromium", flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });

const waiting = new Map();
let asked = 0;
let heard = "";
browser.stdio[4].on("data", (data) => {
  const parts = (heard + data).split("\0");
  heard = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  }
});
function ask(method, params = {}, sessionId) {
  const id = ++asked;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((resolve, reject) => {
    waiting.set(id, (m) => (m.error ? reject(new Error(m.error.message)) : resolve(m.result)));
  });
}
async function openTab() {
  const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
  const tab = {
    ask: (method, params) => ask(method, params, sessionId),
    close: () => ask("Target.closeTarget", { targetId }),
    async value(expression) {
      const params = { expression, returnByValue: true, awaitPromise: true };
      const { result, exceptionDetails: wrong } = await tab.ask("Runtime.evaluate", params);
      if (wrong) throw new Error(`${expression}: ${wrong.exception?.description ?? wrong.text}`);
      return result.value;
    },
    async until(expression, what) {
      for (let tries = 0; tries < 600; ++tries) {
        const value = await tab.value(expression).catch(() => false);
        if (value) return value;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      throw new Error(`${what}: it never came; the page says ${await tab.value(note)}`);
    },
    async picture(name) {
      if (!pictures) return;
      const { data } = await tab.ask("Page.captureScreenshot");
      writeFileSync(join(pictures, `${name}.png`), Buffer.from(data, "base64"));
    },
  };
  return tab;
}
async function visit(address, prepare = "") {
  const tab = await openTab();
  await tab.ask("Page.enable");
  if (prepare) await tab.ask("Page.addScriptToEvaluateOnNewDocument", { source: prepare });
  await tab.ask("Page.navigate", { url: `file://${page}#${address}` });
  return tab;
}
const note = 'document.getElementById("note")?.textContent';
const results = "mrcPlayground.sides.length > 0 && " +
  "mrcPlayground.setup.sides.every((_, i) => mrcPlayground.results[i])";
const drawn = "mrcPlayground.setup.sides.every((_, i) => " +
  "mrcPlayground.drawing(i)?.page.history?.frames.length > 2)";
const fast = 'mrcPlayground.setup.speedNs = 0';
function expect(what, is) {
  if (!is) throw new Error(what);
}

// Long after the cut there is traffic to be seen.
async function worksOn(tab, cutNs) {
  const late = await tab.value("mrcPlayground.drawing(0).page.history.frames.filter((f) => " +
    `f.at > ${cutNs} + 3000 && f.planeBytes.some((bytes) => bytes > 0)).length`);
  expect(`traffic goes on after the cut, in ${late} frames`, late >= 20);
}

async function everyStep() {
  for (let step = 1; step <= 8; ++step) {
    const tab = await visit(`tour=${step}`);
    await tab.until(drawn, `step ${step} is drawn`);
    if (step === 7) await tab.picture("side-by-side");
    if (step === 4) await tab.picture("tour-step");
    await tab.value(fast);
    await tab.until(results, `step ${step} ends`);
    const json = await tab.value("mrcPlayground.results");
    for (const text of json) expect(`step ${step} moved data`, JSON.parse(text).packet_hops > 400);
    const words = await tab.value('document.getElementById("tour").textContent');
    expect(`step ${step} shows no marks`, !words.includes("`"));
    if (step === 4 || step === 6) await worksOn(tab, 10_000);
    if (step === 7) {
      const [mrc, roce] = json.map((text) => JSON.parse(text).victim.ratio);
      expect(`the victim suffers less with MRC: ${mrc}, ${roce}`, 2 * mrc < roce);
    }
    await tab.close();
  }
}

// A click breaks it, on both sides at one time; the link leads to the same runs, and so does the
// command.
async function breaking(transport) {
  const sides = transport === "both" ? 2 : 1;
  const tab = await visit("hosts=16&t0=4&workload=permutation&bytes=4MB&speed=5000" +
    `&transport=${transport}`);
  await tab.until("mrcPlayground.sides.every((side) => side.nowNs > 3000)", "it runs");
  const last = `mrcPlayground.drawing(${sides - 1}).page`;
  await tab.until(`${last}.history?.frames.length > 2`, "it is drawn");
  await tab.value(`${last}.act("cut", "t0:0/t1:1/plane:0", "")`);
  for (let side = 0; side < sides; ++side)
    await tab.until(`mrcPlayground.drawing(${side}).page.lanes().state.includes(5)`,
      `the cable of side ${side} is red`);
  await tab.picture(sides > 1 ? "cut-both" : "cut-cable");
  await tab.value('mrcPlayground.sides[0].act("heal", "t0:0/t1:1/plane:0", "")');
  const plans = await tab.value("mrcPlayground.sides.map((side) => side.faults.join())");
  expect(`one plan: ${plans}`, plans.every((plan) => plan === plans[0]));
  await tab.value(fast);
  await tab.until(results, "the broken run ends");
  await tab.value(`${last}.act("cut", "t0:0/t1:1/plane:0", "")`);
  expect("why nothing is cut", /the run is over/.test(
    await tab.value(`document.querySelectorAll("#sides iframe")[${sides - 1}]` +
      '.contentDocument.getElementById("note").textContent')));
  const hashes = "mrcPlayground.results.map((text) => JSON.parse(text).trace_hash).join()";
  const hash = await tab.value(hashes);
  const address = await tab.value('document.getElementById("link").hash.slice(1)');
  const command = await tab.value('document.getElementById("command").textContent');
  expect("the command has the fault", / --fail 't0:0\/t1:1\/plane:0 down @\d+ns for \d+ns'/.test(command));
  await tab.close();
  const again = await visit(address);
  await again.until("mrcPlayground.sides.length > 0", "the link opens");
  await again.value(fast);
  await again.until(results, "the shared run ends");
  expect("the same run", hash === (await again.value(hashes)));
  await again.close();
  console.log(`${hash} ${command}`);
}

async function badInput() {
  for (const [address, why, prepare] of [
    ["hosts=512&t0=8", "takes up to 256"],
    ["workload=dance", "'dance' is unknown"],
    ["%00=1", "odd name"],
    ["transport=pigeon", "there are mrc, rocev2 and both"],
    ["tour=99", "no whole number up to 8"],
    ["record=x", "--record: a page neither reads nor writes files"],
    ["seeds=4", "--seeds: does nothing in the playground"],
    ["", "no WebAssembly", "delete self.WebAssembly"],
    ["", "cannot run the simulator: no", "WebAssembly.compile = () => Promise.reject(new Error('no'))"],
    ["", "cannot run beside the page: no", "self.Worker = class { constructor() { throw new Error('no'); } }"],
  ]) {
    const tab = await visit(address, prepare);
    await tab.until(`${note}.includes(${JSON.stringify(why)})`, `'${address}' is refused`);
    await tab.close();
  }
}

let status = 0;
try {
  await breaking("mrc");
  await breaking("both");
  await everyStep();
  await badInput();
  console.log("all steps run, a broken run is shared, bad input is told");
} catch (error) {
  console.log(`failed: ${error.message}`);
  status = 1;
}
browser.once("exit", () => {
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  process.exit(status);
});
browser.kill("SIGKILL");
