// Runs the module in node. Usage: run_module.mjs <module.wasm> <module.js> [--steps NS] < settings
//
// Prints the result as `mrc sim --json` does. Settings are lines name=value; a line
// "break NS what" breaks something at that time, "heal NS fault" ends it. With --steps the run is
// advanced in pieces of that length. A last line on the standard error tells the plan of faults.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [wasm, script, flag, stepsNs] = process.argv.slice(2);
const { InputError, Run } = createRequire(import.meta.url)(script);
const settings = [];
const acts = [];
for (const line of readFileSync(0, "utf-8").split("\n").filter((text) => text !== "")) {
  const act = /^(break|heal) (\d+) (.*)$/.exec(line);
  if (act) acts.push({ verb: act[1], at: Number(act[2]), what: act[3] });
  else settings.push(line);
}
let lines = 0;
const run = new Run(new WebAssembly.Module(readFileSync(wasm)), () => ++lines);
try {
  run.start(settings.join("\n"));
  let goesOn = true;
  for (const act of acts) {
    goesOn = goesOn && run.advance(act.at);
    if (act.verb === "break") run.addFault(act.what);
    else run.endFault(Number(act.what));
  }
  const step = flag === "--steps" ? Number(stepsNs) : 1e13;
  for (let at = step; goesOn; at += step) goesOn = run.advance(at);
  process.stderr.write(JSON.stringify({ lines, faults: run.faults() }) + "\n");
  process.stdout.write(run.finish());
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  process.stderr.write(error.message + "\n");
  process.exitCode = 2;
}
