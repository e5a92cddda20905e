// Lines of a stream (docs/view.md) as values. Whatever does not fit is refused with one line.

export interface Row {
  kind: string;
  count: number;
  fold: number;
  gbps: number;
  delayNs: number;
  first: number; // number of its first node
  nodes: number;
}
export interface Cable { lower: number; upper: number; links: number; tier: number }
export interface Geometry { planes: number; rows: Row[]; cables: Cable[]; nodes: number; lanes: number }
export type Channel = [group: string, name: string];

export interface Header {
  source: string;
  title: string;
  live: boolean;
  acts: boolean;
  flows: number;
  command: string;
  counters: Channel[];
  gauges: Channel[];
  geometry: Geometry;
}
export interface FlowEnd {
  source: number; destination: number; bytes: number; started: number; ended: number; ok: boolean;
}
export interface FaultMark { at: number; begins: boolean; text: string }
export interface Frame {
  at: number;
  span: number;
  key: boolean;
  lanes: number[]; // changed ones: lane, load, queue, state
  tallies: number[]; // changed ones: lane, marks, trims, drops since the beginning
  planeBytes: number[];
  counters: number[];
  gauges: number[];
  flows: FlowEnd[];
  flowsEnded: number;
  faults: FaultMark[];
}
export interface Move {
  at: number; lane: number; source: number; destination: number; bytes: number; flags: number;
}
// What the programs in a host say of their devices, in the words of `mrc stat --json`.
export interface PathCounts { [state: string]: number }
export interface QueuePairReport {
  number: number; peer: string; state: string; rate: number; roundTripNs: number; window: number;
  windowUsed: number; inFlight: number; resent: number; timeouts: number; paths: PathCounts;
}
export interface PlaneReport {
  plane: number; up: boolean; silent: number; sends: number; receives: number; paths: PathCounts;
}
export interface PathReport {
  queuePair: number; plane: number; entropy: number; state: string; lost: number; marked: number;
}
export interface DeviceReport {
  pid: number; process: string; device: string; sends: number; receives: number; resends: number;
  queuePairs: number; alarms: string[]; planes: PlaneReport[]; list: QueuePairReport[];
  badPaths: PathReport[];
}
// A queue pair of a simulated host: of each plane its paths by state (EV_STATES).
export interface SenderReport {
  peer: number; connection: number; window: number; inFlight: number; roundTripNs: number;
  resent: number; timeouts: number; planes: number[][]; badPaths: number[][]; // plane, EV, state
}
export interface HostReport {
  host: number; at: number; devices: DeviceReport[]; senders: SenderReport[];
}

export type Line =
  | { kind: "header"; header: Header }
  | { kind: "frame"; frame: Frame }
  | { kind: "packets"; moves: Move[] }
  | { kind: "host"; report: HostReport }
  | { kind: "end"; lines: number; at: number; note: string }
  | { kind: "silent"; why: string }
  | { kind: "gone"; why: string };

export const VERSION = 2;
export const OLDEST_VERSION = 1;
// What a browser draws without standing still. Folding (docs/view.md) stays far below.
export const MAX_LANES = 1 << 18;
export const MAX_NODES = 1 << 17; // of all planes
export const MAX_ROWS = 8;
export const MAX_CHANNELS = 256;

export class StreamError extends Error {}

type Json = Record<string, unknown>;

function refuse(what: string): never { throw new StreamError(what); }

function num(value: unknown, what: string): number {
  return typeof value === "number" && Number.isFinite(value) ? value : refuse(what + " is no number");
}
function count(value: unknown, what: string, most: number): number {
  const n = num(value, what);
  return Number.isInteger(n) && n >= 0 && n <= most ? n : refuse(what + " is out of range");
}
function text(value: unknown): string { return typeof value === "string" ? value : ""; }
function list(value: unknown, what: string): unknown[] {
  return Array.isArray(value) ? value : refuse(what + " is no list");
}
function object(value: unknown, what: string): Json {
  return typeof value === "object" && value !== null ? (value as Json) : refuse(what + " is missing");
}
function numbers(value: unknown, what: string): number[] {
  return list(value ?? [], what).map((v) => num(v, what));
}
function channels(value: unknown): Channel[] {
  const all = list(value ?? [], "channels");
  if (all.length > MAX_CHANNELS)
    refuse(`the stream has ${all.length} counters; this page draws up to ${MAX_CHANNELS}`);
  return all.map((c) => {
    const pair = list(c, "channel");
    return [text(pair[0]), text(pair[1])];
  });
}

function readRows(value: unknown): Row[] {
  let first = 0;
  const all = list(value, "rows");
  if (all.length < 1 || all.length > MAX_ROWS)
    refuse(`the fabric has ${all.length} rows; this page draws 1 to ${MAX_ROWS}`);
  return all.map((each) => {
    const row = object(each, "a row");
    const devices = count(row.count, "count", 1 << 20);
    const fold = Math.max(1, count(row.fold, "fold", 1 << 20));
    const nodes = Math.ceil(devices / fold);
    const read: Row = {
      kind: text(row.kind), count: devices, fold, first, nodes,
      gbps: num(row.gbps ?? 0, "gbps"), delayNs: num(row.delay_ns ?? 0, "delay_ns"),
    };
    first += nodes;
    return read;
  });
}

function readGeometry(json: Json): Geometry {
  const planes = count(json.planes, "planes", 256);
  if (planes === 0) refuse("the fabric has no planes");
  const rows = readRows(json.rows);
  const nodes = rows.reduce((sum, row) => sum + row.nodes, 0);
  if (nodes * planes > MAX_NODES)
    refuse(`the fabric has ${nodes * planes} nodes over all planes; this page draws up to ${MAX_NODES}`);
  const tierOf = (node: number): number => rows.findIndex((r) => node < r.first + r.nodes);
  const all = list(json.cables, "cables");
  const lanes = 2 * planes * all.length;
  if (lanes > MAX_LANES)
    refuse(`the fabric has ${lanes / 2} cables; this page draws up to ${MAX_LANES / 2}`);
  const cables = all.map((each) => {
    const c = numbers(each, "cable");
    const lower = count(c[0], "node", nodes - 1);
    return { lower, upper: count(c[1], "node", nodes - 1), links: c[2], tier: tierOf(lower) };
  });
  return { planes, rows, cables, nodes, lanes };
}

function readHeader(json: Json): Header {
  const version = Number(json.view);
  if (!(version >= OLDEST_VERSION && version <= VERSION))
    refuse(`the stream is of version ${String(json.view)}; this page reads ${OLDEST_VERSION} to ${VERSION}`);
  return {
    source: text(json.source), title: text(json.title), command: text(json.command),
    live: json.live === true, acts: json.acts === true, flows: num(json.flows ?? 0, "flows"),
    counters: channels(json.counters), gauges: channels(json.gauges),
    geometry: readGeometry(object(json.geometry, "the geometry")),
  };
}

function readFrame(json: Json): Frame {
  return {
    at: num(json.t, "t"), span: num(json.d, "d"), key: json.k === 1,
    lanes: numbers(json.l, "lanes"), tallies: numbers(json.e, "tallies"), planeBytes: numbers(json.g, "goodput"),
    counters: numbers(json.c, "counters"), gauges: numbers(json.u, "gauges"),
    flows: list(json.f ?? [], "flows").map((each) => {
      const [source, destination, bytes, started, ended, ok] = numbers(each, "flow");
      return { source, destination, bytes, started, ended, ok: ok === 1 };
    }),
    flowsEnded: num(json.n ?? 0, "flows"),
    faults: list(json.x ?? [], "faults").map((each) => {
      const fault = list(each, "fault");
      return { at: num(fault[0], "time"), begins: fault[1] === 1, text: text(fault[2]) };
    }),
  };
}

function readMoves(json: Json): Move[] {
  const base = num(json.b, "b");
  const flat = numbers(json.m, "packets");
  const moves: Move[] = [];
  for (let i = 0; i + 5 < flat.length; i += 6)
    moves.push({
      at: base + flat[i], lane: flat[i + 1], source: flat[i + 2], destination: flat[i + 3],
      bytes: flat[i + 4], flags: flat[i + 5],
    });
  return moves;
}

function readPaths(value: unknown): PathCounts {
  const counts: PathCounts = {};
  for (const [state, paths] of Object.entries((value ?? {}) as Json))
    counts[state] = num(paths, "paths");
  return counts;
}

function readQueuePair(json: Json): QueuePairReport {
  const counters = (json.counters ?? {}) as Json;
  return {
    number: num(json.number, "number"), peer: text(json.peer), state: text(json.state),
    rate: num(json.bytes_per_second, "rate"), roundTripNs: num(json.round_trip_ns, "round trip"),
    window: num(json.window_bytes, "window"), windowUsed: num(json.window_used_bytes, "window"),
    inFlight: num(json.packets_in_flight, "packets"), paths: readPaths(json.paths),
    resent: num(counters.resent_packets, "packets"), timeouts: num(counters.timeouts, "timeouts"),
  };
}

function readDevice(json: Json): DeviceReport {
  const rates = (json.rates ?? {}) as Json;
  return {
    pid: num(json.pid, "pid"), process: text(json.process), device: text(json.device),
    sends: num(rates.sent_bytes_per_second, "rate"),
    receives: num(rates.received_bytes_per_second, "rate"),
    resends: num(rates.resent_packets_per_second, "rate"),
    queuePairs: num(json.queue_pairs, "queue pairs"),
    alarms: list(json.alarms, "alarms").map(text),
    planes: (list(json.planes, "planes") as Json[]).map((plane) => ({
      plane: num(plane.plane, "plane"), up: plane.link_up === true && plane.enabled === true,
      silent: num(plane.silent_queue_pairs, "queue pairs"), paths: readPaths(plane.paths),
      sends: num(plane.sent_bytes_per_second, "rate"),
      receives: num(plane.received_bytes_per_second, "rate"),
    })),
    list: (list(json.busiest_queue_pairs, "queue pairs") as Json[]).map(readQueuePair),
    badPaths: (list(json.bad_paths, "paths") as Json[]).map((path) => ({
      queuePair: num(path.queue_pair, "queue pair"), plane: num(path.plane, "plane"),
      entropy: num(path.entropy, "entropy"), state: text(path.state),
      lost: num(path.lost, "packets"), marked: num(path.marked, "packets"),
    })),
  };
}

function readSender(json: Json): SenderReport {
  return {
    peer: num(json.peer, "peer"), connection: num(json.connection, "connection"),
    window: num(json.window, "window"), inFlight: num(json.in_flight, "bytes"),
    roundTripNs: num(json.round_trip_ns, "round trip"), resent: num(json.resent, "packets"),
    timeouts: num(json.timeouts, "timeouts"),
    planes: list(json.planes, "planes").map((plane) => numbers(plane, "paths")),
    badPaths: list(json.bad, "paths").map((path) => numbers(path, "path")),
  };
}

function readHost(json: Json): HostReport {
  return {
    host: count(json.host, "host", 1 << 20), at: num(json.t, "t"),
    devices: (list(json.devices ?? [], "devices") as Json[]).map(readDevice),
    senders: (list(json.senders ?? [], "senders") as Json[]).map(readSender),
  };
}

export function readLine(line: string): Line {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return refuse("a line of the stream is damaged");
  }
  try {
    return readKind(object(json, "a line"));
  } catch (error) {
    // Something is of another kind than it should be, such as a list with nothing in it.
    if (error instanceof StreamError) throw error;
    return refuse("a line of the stream is damaged");
  }
}

function readKind(json: Json): Line {
  if ("view" in json) return { kind: "header", header: readHeader(json) };
  if ("m" in json) return { kind: "packets", moves: readMoves(json) };
  if ("end" in json)
    return { kind: "end", lines: num(json.end, "end"), at: num(json.t, "t"), note: text(json.note) };
  if ("host" in json) return { kind: "host", report: readHost(json) };
  if ("silent" in json) return { kind: "silent", why: text(json.silent) };
  if ("gone" in json) return { kind: "gone", why: text(json.gone) };
  return { kind: "frame", frame: readFrame(json) };
}
