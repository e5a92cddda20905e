// A run beside the page, so that the page stays smooth: it is advanced in pieces of some
// milliseconds, and listens between two of them.

import { FromWorker, ToWorker } from "./messages";
import { InputError, Run } from "./module";

/** A piece takes about so long on the clock on the wall. */
const kPieceMs = 12;
const kShortestNs = 100;
const kLongestNs = 1e9;

interface Scope {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}

class Worker {
  private run: Run | null = null;
  private lines: string[] = [];
  private nowNs = 0;
  private untilNs = 0;
  private pieceNs = 10_000;
  private awake = false;
  private over = false;
  private held = false;

  constructor(private readonly scope: Scope) {
    scope.onmessage = (event) => this.take(event.data);
  }

  private take(message: ToWorker): void {
    try {
      if (message.kind === "start") this.start(message.module, message.settings);
      else if (message.kind === "until") this.goOn(message.ns);
      else if (message.kind === "film") this.run?.film(message.moves);
      else if (message.kind === "hold") this.hold(message.id);
      else this.changeFaults(message);
    } catch (error) {
      this.scope.postMessage({ kind: "failed", why: (error as Error).message });
      this.over = true;
    }
  }

  private start(module: WebAssembly.Module, settings: string): void {
    this.run = new Run(module, (line) => this.lines.push(line));
    this.run.start(settings);
    this.tell();
    const faults = this.run.faults();
    if (faults.length > 0) this.scope.postMessage({ kind: "plan", faults, fault: -1, id: 0 });
  }

  private hold(id: number): void {
    this.held = true;
    this.scope.postMessage({ kind: "held", ns: this.nowNs, id });
  }

  private changeFaults(message: ToWorker & { id: number; at: number }): void {
    const run = this.run;
    this.held = false;
    if (run !== null && !this.over && this.nowNs < message.at) this.advance(run, message.at);
    this.goOn(this.untilNs);
    if (run === null || this.over) {
      this.scope.postMessage({ kind: "refused", why: "the run is over", id: message.id });
      return;
    }
    try {
      let fault = -1;
      if (message.kind === "break") fault = run.addFault(message.what).fault;
      else if (message.kind === "heal") run.endFault((fault = message.fault));
      this.scope.postMessage({ kind: "plan", faults: run.faults(), fault, id: message.id });
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.scope.postMessage({ kind: "refused", why: error.message, id: message.id });
    }
  }

  private goOn(ns: number): void {
    this.untilNs = Math.max(this.untilNs, ns);
    if (this.awake || this.over) return;
    this.awake = true;
    setTimeout(() => this.piece(), 0);
  }

  private piece(): void {
    this.awake = false;
    const run = this.run;
    if (run === null || this.over || this.held || this.nowNs >= this.untilNs) return;
    const begin = performance.now();
    try {
      this.advance(run, Math.min(this.untilNs, this.nowNs + this.pieceNs));
      this.adapt(performance.now() - begin);
      if (!this.over) this.goOn(this.untilNs);
    } catch (error) {
      this.over = true;
      this.scope.postMessage({ kind: "failed", why: (error as Error).message });
    }
  }

  private advance(run: Run, untilNs: number): void {
    this.over = !run.advance(untilNs);
    this.nowNs = untilNs;
    const json = this.over ? run.finish() : "";
    this.tell();
    if (this.over) this.scope.postMessage({ kind: "result", json });
  }

  private adapt(tookMs: number): void {
    const factor = Math.min(2, Math.max(0.5, kPieceMs / Math.max(tookMs, 0.1)));
    this.pieceNs = Math.min(kLongestNs, Math.max(kShortestNs, Math.round(this.pieceNs * factor)));
  }

  private tell(): void {
    const { lines, run } = this;
    this.lines = [];
    if (lines.length > 0) this.scope.postMessage({ kind: "lines", lines });
    if (run !== null)
      this.scope.postMessage({
        kind: "at",
        ns: this.nowNs,
        packetHops: run.packetHops,
        runningS: run.runningS,
      });
  }
}

export function serve(): void {
  new Worker(self as unknown as Scope);
}
