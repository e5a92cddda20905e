// The page of the playground: a form, one or two runs with their drawings, results, the tour.

import { resultTable } from "./results";
import { Drawing } from "./frame";
import { AddressError, commandOf, readAddress, settingLines, Setup, writeAddress } from "./settings";
import { faultOf, OverError, Side } from "./side";
import { Verb } from "../../pages/source";
import { readForm, writeForm } from "./form";
import { kSteps, setupOf } from "./tour";

interface Parts {
  wasm: string; // base64
  worker: string; // script
  frame: string; // HTML
}
type PartsWindow = Window & { mrcParts: Parts; mrcSource(name: string): Side };

/** Below this speed single packets are drawn, and the picture runs so far behind the simulation. */
const kSlowNs = 10_000;
const kLagNs = 3_000;
const kTickMs = 40;
const kFlatOutNs = 1e9;

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Words between backticks are names of the result or of settings. */
function fill(place: HTMLElement, text: string): void {
  place.replaceChildren(
    ...text.split("`").map((part, i) => {
      if (i % 2 === 0) return document.createTextNode(part);
      const name = document.createElement("code");
      name.textContent = part;
      return name;
    }),
  );
}

export class Playground {
  setup: Setup;
  readonly sides: Side[] = [];
  readonly results: string[] = [];
  private readonly module: Promise<WebAssembly.Module>;
  private readonly workerUrl: string;
  private targetNs = 0;
  private paused = false;
  private plan: string[] = []; // of faults, the same on all sides
  private turn: Promise<unknown> = Promise.resolve(); // what is broken one after the other
  private lastTick = performance.now();

  constructor(private readonly parts: Parts) {
    const bytes = Uint8Array.from(atob(parts.wasm), (c) => c.charCodeAt(0));
    this.module = WebAssembly.compile(bytes);
    this.workerUrl = URL.createObjectURL(new Blob([parts.worker], { type: "text/javascript" }));
    this.setup = setupOf(1);
    (window as unknown as PartsWindow).mrcSource = (name) => this.sides[Number(name)];
    window.addEventListener("hashchange", () => this.open(location.hash.slice(1)));
    element("run").addEventListener("click", () => this.openSetup(readForm(this.setup)));
    element("pause").addEventListener("click", () => this.pause(!this.paused));
    element("speed").addEventListener("change", () => this.changeSpeed());
    this.listSteps();
    window.setInterval(() => this.tick(), kTickMs);
    this.open(location.hash.slice(1));
  }

  /** What stands behind the # of the address, from the beginning. */
  open(address: string): void {
    try {
      const setup = readAddress(address);
      const isTourAlone = /^tour=\d$/.test(address) && setup.tour > 0;
      this.begin(isTourAlone ? setupOf(setup.tour) : setup);
    } catch (error) {
      if (!(error instanceof AddressError)) throw error;
      this.clear();
      this.say(`This address cannot be opened: ${error.message}`, true);
    }
  }

  private openSetup(setup: Setup): void {
    const address = writeAddress(setup);
    if (location.hash.slice(1) === address) this.open(address);
    else location.hash = address;
  }

  private begin(setup: Setup): void {
    this.clear();
    this.setup = setup;
    writeForm(setup);
    this.say("", false);
    this.showTour();
    this.showCommand();
    try {
      this.beginSides(setup);
    } catch (error) {
      this.clear();
      this.say(`The simulation cannot run beside the page: ${(error as Error).message}`, true);
    }
    this.pause(false);
  }

  private beginSides(setup: Setup): void {
    setup.sides.forEach((transport, number) => {
      const side = new Side(this.workerUrl, {
        act: (verb, target, value) => this.act(verb, target, value),
        planChanged: (faults) => this.planChanged(faults),
        ended: (json) => this.ended(number, json),
        failed: (why) => this.say(why, true),
      });
      this.sides.push(side);
      this.addFrame(number);
      this.module.then(
        (module) => side.begin(module, settingLines(setup, transport)),
        (error: Error) => this.say(`This browser cannot run the simulator: ${error.message}`, true));
    });
  }

  private clear(): void {
    for (const side of this.sides) side.stop();
    this.sides.length = this.results.length = 0;
    this.targetNs = 0;
    this.plan = [];
    this.turn = Promise.resolve();
    element("sides").replaceChildren();
    element("results").replaceChildren();
  }

  private addFrame(number: number): void {
    const frame = document.createElement("iframe");
    frame.name = String(number);
    frame.title = this.setup.sides[number];
    frame.srcdoc = this.parts.frame;
    element("sides").append(frame);
  }

  drawing(number: number): Drawing | undefined {
    const frame = element("sides").children[number] as HTMLIFrameElement | undefined;
    return (frame?.contentWindow as unknown as { mrcDrawing?: Drawing } | null)?.mrcDrawing;
  }

  private get isSlow(): boolean {
    return this.setup.speedNs > 0 && this.setup.speedNs <= kSlowNs;
  }

  private tick(): void {
    const now = performance.now();
    const elapsedS = Math.min(0.2, (now - this.lastTick) / 1000);
    this.lastTick = now;
    if (this.paused || this.sides.every((side) => side.over)) return;
    const slowest = Math.min(...this.sides.filter((s) => !s.over).map((s) => s.nowNs));
    if (this.setup.speedNs === 0) this.targetNs = slowest + kFlatOutNs;
    // A computer that cannot keep up shows it slower, and both sides at the same time.
    else if (slowest >= this.targetNs - this.setup.speedNs / 5 - 1)
      this.targetNs += elapsedS * this.setup.speedNs;
    this.sides.forEach((side, number) => {
      if (side.over) return;
      if (this.isSlow) this.showPackets(side, number);
      side.until(this.targetNs + (this.isSlow ? kLagNs : 0));
    });
  }

  private showPackets(side: Side, number: number): void {
    side.film(20_000);
    const page = this.drawing(number)?.page;
    if (!page?.history) return;
    page.clock.speed = this.setup.speedNs / 1e9;
    page.seek(Math.min(this.targetNs, side.nowNs));
  }

  private pause(paused: boolean): void {
    this.paused = paused;
    element("pause").textContent = paused ? "go on" : "pause";
  }

  private changeSpeed(): void {
    this.setup.speedNs = Number(element<HTMLSelectElement>("speed").value);
    this.sides.forEach((_, number) => {
      const page = this.drawing(number)?.page;
      if (page) page.clock.following = !this.isSlow;
    });
    history.replaceState(null, "", `#${writeAddress(this.setup)}`);
    this.showCommand();
  }

  /** Breaks or heals something on all sides at the same time of theirs, in the order of the asking. */
  act(verb: Verb, target: string, value: string): Promise<string> {
    const done = this.turn.then(() => this.change(verb, target, value));
    this.turn = done.catch(() => undefined);
    return done;
  }

  private async change(verb: Verb, target: string, value: string): Promise<string> {
    const live = this.sides.filter((side) => !side.over);
    if (live.length === 0)
      throw new Error(`${verb} ${target}: the run is over; "run" begins it anew`);
    const faults = verb === "heal" ? live[0].lasting(target) : [];
    if (verb === "heal" && faults.length === 0) throw new Error(`${target} has no fault that lasts`);
    const at = Math.max(...(await Promise.all(live.map((side) => side.hold()))));
    if (verb !== "heal")
      return this.onAll(live, (side) =>
        side.change((id) => ({ kind: "break", what: faultOf(verb, target, value), at, id })));
    let done = "";
    for (const fault of faults)
      done = await this.onAll(live, (side) => side.change((id) => ({ kind: "heal", fault, at, id })));
    return done;
  }

  /** A side that ends meanwhile has ended before the fault, and would not have met it either. */
  private async onAll(sides: Side[], change: (side: Side) => Promise<string>): Promise<string> {
    const answers = await Promise.allSettled(sides.map(change));
    let wrong: unknown = null;
    for (const answer of answers)
      if (answer.status === "rejected" && (wrong === null || wrong instanceof OverError))
        wrong = answer.reason;
    for (const answer of answers)
      if (answer.status === "fulfilled" && (wrong === null || wrong instanceof OverError))
        return answer.value;
    throw wrong;
  }

  private planChanged(faults: string[]): void {
    this.plan = faults;
    this.showCommand();
  }

  private ended(number: number, json: string): void {
    this.results[number] = json;
    element("results").replaceChildren(resultTable(this.setup.sides, this.results));
  }

  /** With what was broken by hand, so that the command and the link give the same run. */
  private showCommand(): void {
    const settings = this.setup.settings.filter(([name]) => name !== "fail");
    const planned = this.setup.settings.filter(([name]) => name === "fail");
    const fails = this.plan.length > 0 ? this.plan.map((f): [string, string] => ["fail", f]) : planned;
    const whole: Setup = { ...this.setup, settings: [...settings, ...fails] };
    element("command").textContent = commandOf(whole);
    element<HTMLAnchorElement>("link").href = `#${writeAddress(whole)}`;
  }

  private listSteps(): void {
    kSteps.forEach((step, index) => {
      const link = document.createElement("a");
      link.href = `#tour=${index + 1}`;
      link.textContent = `${index + 1} ${step.title}`;
      element("steps").append(link);
    });
  }

  private showTour(): void {
    const step = kSteps[this.setup.tour - 1];
    element("tour").hidden = step === undefined;
    if (step === undefined) return;
    element("tour-title").textContent = `${this.setup.tour}. ${step.title}`;
    fill(element("tour-text"), step.text);
    fill(element("tour-attempt"), `Try: ${step.attempt}`);
  }

  private say(text: string, bad: boolean): void {
    element("note").textContent = text;
    element("note").className = bad ? "bad" : "";
  }
}

export function open(): void {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function") {
    element("note").textContent =
      "This browser has no WebAssembly, which the playground needs; any browser since 2021 has it.";
    element("note").className = "bad";
    return;
  }
  const parts = (window as unknown as PartsWindow).mrcParts;
  (window as unknown as { mrcPlayground: Playground }).mrcPlayground = new Playground(parts);
}
