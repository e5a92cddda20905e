// One run beside the page, as a source of lines for a drawing, and what can be done to it.

import { Source, SourceState, Verb } from "../../pages/source";
import { FromWorker, ToWorker } from "./messages";

export interface SideEvents {
  /** Somebody wants something done in the drawing of this side; it is done to all of them. */
  act(verb: Verb, target: string, value: string): Promise<string>;
  planChanged(faults: string[]): void;
  ended(json: string): void;
  failed(why: string): void;
}

/** A run that is over takes no faults. */
export class OverError extends Error {}

/** The same words as in fault plans; a lab has other times than a simulation. */
export function faultOf(verb: Verb, target: string, value: string): string {
  if (verb === "cut") return `${target} down`;
  if (verb === "degrade") return `${target} rate ${value}`;
  if (verb === "loss") return `${target} loss ${value}`;
  return `${target} flap ${value.replace(/ms/g, "us")} for 10ms`;
}

export class Side implements Source {
  nowNs = 0;
  packetHops = 0;
  runningS = 0;
  faults: string[] = [];
  over = false;
  private stopped = false; // its worker is gone
  private readonly worker: Worker;
  private sink: (line: string) => void = () => undefined;
  private tell: (state: SourceState, why: string) => void = () => undefined;
  private readonly answers = new Map<number, (answer: FromWorker) => void>();
  private asked = 0;
  private waiting: string[] = []; // lines from before the drawing was there
  private drawn = false;

  constructor(workerUrl: string, private readonly events: SideEvents) {
    this.worker = new Worker(workerUrl);
    this.worker.onmessage = (event: MessageEvent<FromWorker>) => this.take(event.data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.over = this.stopped = true;
      this.dropAnswers();
      events.failed(`the run beside this page ended: ${event.message || "its script did not start"}`);
    };
  }

  begin(module: WebAssembly.Module, settings: string): void {
    this.send({ kind: "start", module, settings });
  }
  until(ns: number): void {
    if (!this.over) this.send({ kind: "until", ns: Math.round(ns) });
  }
  film(moves: number): void {
    this.send({ kind: "film", moves });
  }

  start(sink: (line: string) => void, tell: (state: SourceState, why: string) => void): void {
    this.sink = sink;
    this.tell = tell;
    this.drawn = true;
    tell("open", "");
    for (const line of this.waiting) sink(line);
    this.waiting = [];
  }
  stop(): void {
    this.worker.terminate();
    this.over = this.stopped = true;
    this.dropAnswers();
  }
  private dropAnswers(): void {
    for (const [id, answer] of this.answers) answer({ kind: "refused", why: "the run is over", id });
    this.answers.clear();
  }

  act(verb: Verb, target: string, value: string): Promise<string> {
    return this.events.act(verb, target, value);
  }

  /** Numbers of the faults of this target that a hand can end. */
  lasting(target: string): number[] {
    return this.faults
      .map((text, fault) => ({ text, fault }))
      .filter(({ text }) => text.startsWith(`${target} `))
      .filter(({ text }) => !text.includes(" for ") || text.endsWith(" for 10ms"))
      .map(({ fault }) => fault);
  }

  /** Stands still from now on, until the next change; tells at which time. */
  async hold(): Promise<number> {
    const answer = await this.answerTo((id) => ({ kind: "hold", id }));
    return answer.kind === "held" ? answer.ns : 0;
  }
  /** Goes on to that time and changes something then; tells how it stands in the plan. */
  async change(message: (id: number) => ToWorker): Promise<string> {
    const answer = await this.answerTo(message);
    if (answer.kind === "plan") return answer.faults[answer.fault];
    const why = answer.kind === "refused" ? answer.why : "no answer";
    throw this.over ? new OverError(why) : new Error(why);
  }

  private answerTo(message: (id: number) => ToWorker): Promise<FromWorker> {
    const id = ++this.asked;
    return new Promise((resolve) => {
      if (this.stopped) {
        resolve({ kind: "refused", why: "the run is over", id });
        return;
      }
      this.answers.set(id, resolve);
      this.send(message(id));
    });
  }

  private send(message: ToWorker): void {
    this.worker.postMessage(message);
  }

  private take(message: FromWorker): void {
    if (message.kind === "lines") {
      if (this.drawn) message.lines.forEach((line) => this.sink(line));
      else this.waiting.push(...message.lines);
    } else if (message.kind === "at") {
      this.nowNs = message.ns;
      this.packetHops = message.packetHops;
      this.runningS = message.runningS;
    } else if (message.kind === "held" || message.kind === "plan" || message.kind === "refused") {
      if (message.kind === "plan") this.events.planChanged((this.faults = message.faults));
      this.answers.get(message.id)?.(message);
      this.answers.delete(message.id);
    } else {
      this.over = true;
      this.tell("done", "");
      if (message.kind === "result") this.events.ended(message.json);
      else this.events.failed(message.why);
    }
  }
}
