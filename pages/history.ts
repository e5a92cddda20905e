// Everything a stream has told so far, and what the fabric looked like at any time of it.

import {
  FaultMark, FlowEnd, Frame, Geometry, Header, HostReport, Line, Move, StreamError,
} from "./stream";

export const STATES = ["healthy", "slow", "lossy", "black hole", "partly down", "down"];
export const DOWN = 5;
export const PARTLY_DOWN = 4;

// A frame of a live source every 250 ms for half an hour.
const MAX_FRAMES = 7200;
const MAX_MOVES = 1_000_000;
const MAX_FLOWS = 200_000;
const MAX_REPORTS = 120; // of a host

export interface Lanes {
  load: Uint16Array; queue: Float64Array; state: Uint8Array;
  // Since the beginning.
  marks: Float64Array; trims: Float64Array; drops: Float64Array;
}

function emptyLanes(count: number): Lanes {
  return {
    load: new Uint16Array(count), queue: new Float64Array(count), state: new Uint8Array(count),
    marks: new Float64Array(count), trims: new Float64Array(count), drops: new Float64Array(count),
  };
}

function apply(lanes: Lanes, frame: Frame): void {
  if (frame.key) {
    lanes.load.fill(0);
    lanes.queue.fill(0);
    lanes.state.fill(0);
    lanes.marks.fill(0);
    lanes.trims.fill(0);
    lanes.drops.fill(0);
  }
  const l = frame.lanes;
  for (let i = 0; i + 3 < l.length; i += 4) {
    const lane = l[i];
    if (lane >= lanes.load.length) continue;
    lanes.load[lane] = l[i + 1];
    lanes.queue[lane] = l[i + 2];
    lanes.state[lane] = l[i + 3];
  }
  const e = frame.tallies;
  for (let i = 0; i + 3 < e.length; i += 4) {
    const lane = e[i];
    if (lane >= lanes.load.length) continue;
    lanes.marks[lane] = e[i + 1];
    lanes.trims[lane] = e[i + 2];
    lanes.drops[lane] = e[i + 3];
  }
}

export class History {
  readonly header: Header;
  readonly frames: Frame[] = [];
  readonly moves: Move[] = [];
  readonly flows: FlowEnd[] = [];
  readonly faults: FaultMark[] = [];
  private readonly reports = new Map<number, HostReport[]>(); // by host, in order of time
  ended = false;
  note = "";
  private lanes: Lanes;
  private at = -1; // number of the frame that `lanes` shows
  private linesSeen = 1;
  private movesSorted = 0;

  constructor(header: Header) {
    this.header = header;
    this.lanes = emptyLanes(header.geometry.lanes);
  }

  get geometry(): Geometry { return this.header.geometry; }
  get lastTime(): number { return this.frames.length ? this.frames[this.frames.length - 1].at : 0; }

  add(line: Line): void {
    if (line.kind === "frame") this.addFrame(line.frame);
    if (line.kind === "packets" && this.moves.length < MAX_MOVES)
      for (const move of line.moves) this.moves.push(move);
    if (line.kind === "host") this.addReport(line.report);
    if (line.kind === "silent") return;
    if (line.kind === "gone") {
      this.ended = true;
      this.note = line.why;
    }
    if (line.kind === "end") {
      if (line.lines !== this.linesSeen) throw new StreamError("the recording misses lines");
      this.ended = true;
      this.note = line.note;
    }
    ++this.linesSeen;
  }

  private addFrame(frame: Frame): void {
    this.frames.push(frame);
    for (const flow of frame.flows) if (this.flows.length < MAX_FLOWS) this.flows.push(flow);
    this.faults.push(...frame.faults);
    if (this.frames.length > MAX_FRAMES) this.forget();
  }

  private addReport(report: HostReport): void {
    const known = this.reports.get(report.host) ?? [];
    known.push(report);
    if (known.length > MAX_REPORTS) known.shift();
    this.reports.set(report.host, known);
  }
  // What a host said last at this time, if that is still remembered.
  reportAt(host: number, time: number): HostReport | undefined {
    const until = (this.reports.get(host) ?? []).filter((report) => report.at <= time);
    return until[until.length - 1];
  }

  // Of this host: the devices there are, by node, and how many planes they have. Both are empty
  // for other sources, whose nodes never change.
  devices(): { names: Map<number, string>; planes: number } {
    const names = new Map<number, string>();
    let planes = 0;
    if (this.header.source !== "host") return { names, planes };
    for (const [host, reports] of [...this.reports].sort(([a], [b]) => a - b))
      for (const device of reports[reports.length - 1].devices) {
        names.set(host, `${device.process} ${device.pid} ${device.device}`);
        planes = Math.max(planes, device.planes.length);
      }
    return { names, planes };
  }

  // Drops the oldest frames up to one that tells everything.
  private forget(): void {
    let next = MAX_FRAMES / 8;
    while (next < this.frames.length && !this.frames[next].key) ++next;
    this.frames.splice(0, next);
    this.at = -1;
  }

  // The last frame at or before this time, the first when there is none.
  indexAt(time: number): number {
    let low = 0;
    let high = this.frames.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.frames[middle].at <= time) low = middle; else high = middle - 1;
    }
    return low;
  }

  // What the lanes were in a frame. The result is reused by the next call.
  lanesAt(index: number): Lanes {
    if (index >= this.frames.length) return this.lanes;
    let from = this.at;
    if (from > index || from < 0) from = -1;
    let start = from + 1;
    for (let i = index; i > from; --i)
      if (this.frames[i].key) { start = i; break; }
    for (let i = start; i <= index; ++i) apply(this.lanes, this.frames[i]);
    this.at = index;
    return this.lanes;
  }

  // Packets in order of time, from the first that begins at or after `time`.
  movesFrom(time: number): number {
    if (this.movesSorted !== this.moves.length) {
      this.moves.sort((a, b) => a.at - b.at);
      this.movesSorted = this.moves.length;
    }
    let low = 0;
    let high = this.moves.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.moves[middle].at < time) low = middle + 1; else high = middle;
    }
    return low;
  }
}
