// Where nodes stand, and what they are called: planes side by side, hosts at the bottom.

import { Geometry, Row } from "./stream";

export interface Point { x: number; y: number }
export interface Place { plane: number; node: number }

// In units of the drawing: a plane is so wide, with a gap to the next.
export const PLANE_WIDTH = 1000;
export const PLANE_GAP = 90;
export const ROW_GAP = 420;
const MARGIN = 60;

export class Layout {
  readonly width: number;
  readonly height: number;
  private readonly x: Float64Array;
  private readonly rowOf: Uint8Array;
  private readonly shownOf: number[]; // nodes of a row that are drawn
  readonly upper: number[][] = []; // cables of a node, upwards
  readonly lower: number[][] = [];

  // Devices of a host come and go: those that have a name are drawn, and stand under it.
  constructor(readonly geometry: Geometry,
              private readonly names: ReadonlyMap<number, string> = new Map()) {
    const rows = geometry.rows;
    this.width = geometry.planes * (PLANE_WIDTH + PLANE_GAP) - PLANE_GAP;
    this.height = (rows.length - 1) * ROW_GAP + 2 * MARGIN;
    this.x = new Float64Array(geometry.nodes);
    this.rowOf = new Uint8Array(geometry.nodes);
    this.shownOf = rows.map((row, r) => {
      const nodes = Array.from({ length: row.nodes }, (_, i) => row.first + i);
      for (const node of nodes) this.rowOf[node] = r;
      const shown = nodes.filter((node) => this.isShown(node));
      shown.forEach((node, i) => { this.x[node] = ((i + 0.5) / shown.length) * PLANE_WIDTH; });
      return shown.length;
    });
    for (let node = 0; node < geometry.nodes; ++node) {
      this.upper.push([]);
      this.lower.push([]);
    }
    geometry.cables.forEach((cable, number) => {
      this.upper[cable.lower].push(number);
      this.lower[cable.upper].push(number);
    });
  }

  row(node: number): Row { return this.geometry.rows[this.rowOf[node]]; }
  rowNumber(node: number): number { return this.rowOf[node]; }
  isShown(node: number): boolean { return this.row(node).kind !== "device" || this.names.has(node); }
  shownIn(row: number): number { return this.shownOf[row]; }
  named(text: string): number[] {
    return [...this.names].filter(([, name]) => name.toLowerCase().includes(text)).map(([node]) => node);
  }

  at(plane: number, node: number): Point {
    return {
      x: plane * (PLANE_WIDTH + PLANE_GAP) + this.x[node],
      y: this.height - MARGIN - this.rowOf[node] * ROW_GAP,
    };
  }

  // Width that a node may take.
  room(node: number): number { return PLANE_WIDTH / Math.max(1, this.shownOf[this.rowOf[node]]); }

  // "t0:3", or "t0:8-15" where several are folded; what it is called where it has a name.
  device(node: number): string {
    const row = this.row(node);
    const name = this.names.get(node);
    if (name !== undefined) return name;
    const from = (node - row.first) * row.fold;
    const to = Math.min(row.count, from + row.fold) - 1;
    return `${row.kind}:${from}${to > from ? "-" + to : ""}`;
  }
  name(place: Place): string { return `${this.device(place.node)}/plane:${place.plane}`; }
  cableName(plane: number, cable: number): string {
    const c = this.geometry.cables[cable];
    return c.tier === 0 ? `${this.device(c.lower)}/plane:${plane}`
                        : `${this.device(c.lower)}/${this.device(c.upper)}/plane:${plane}`;
  }
  // The cable between switches of exactly this name.
  cableOf(name: string): { kind: "cable"; plane: number; cable: number } | null {
    if (!name.includes("/")) return null;
    const { cables, planes } = this.geometry;
    for (let plane = 0; plane < planes; ++plane)
      for (let cable = 0; cable < cables.length; ++cable)
        if (cables[cable].tier > 0 && this.cableName(plane, cable) === name)
          return { kind: "cable", plane, cable };
    return null;
  }
  // One device, or one cable: what a fault can name.
  isSingle(node: number): boolean { return this.row(node).fold === 1; }

  laneUp(plane: number, cable: number): number {
    return 2 * (plane * this.geometry.cables.length + cable);
  }

  nodeOf(kind: string, device: number): number {
    const row = this.geometry.rows.find((r) => r.kind === kind);
    if (row === undefined || !(device >= 0 && device < row.count)) return -1;
    return row.first + Math.floor(device / row.fold);
  }

  // Every way between two host nodes in one plane, as cables: up from one until a node that the
  // other reaches too. Folded hosts of one rack share their only way.
  ways(from: number, to: number): { up: number[]; down: number[] }[] {
    const climb = (node: number): Map<number, number[][]> => {
      const reached = new Map<number, number[][]>([[node, [[]]]]);
      let level = [node];
      while (level.length > 0) {
        const next: number[] = [];
        for (const each of level)
          for (const cable of this.upper[each]) {
            const upper = this.geometry.cables[cable].upper;
            if (!reached.has(upper)) { reached.set(upper, []); next.push(upper); }
            for (const way of reached.get(each) ?? []) reached.get(upper)?.push([...way, cable]);
          }
        level = next;
      }
      return reached;
    };
    const a = climb(from);
    const b = climb(to);
    const common = [...a.keys()].filter((node) => b.has(node));
    const lowest = Math.min(...common.map((node) => this.rowOf[node]));
    return common.filter((node) => this.rowOf[node] === lowest).flatMap((top) =>
      (a.get(top) ?? []).flatMap((up) => (b.get(top) ?? []).map((down) => ({ up, down }))));
  }
}

export function microseconds(ns: number): string {
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
  return (ns / 1e3).toFixed(2) + " us";
}
export function bytesText(bytes: number): string {
  if (bytes >= 1e9) return (bytes / 1e9).toFixed(2) + " GB";
  if (bytes >= 1e6) return (bytes / 1e6).toFixed(2) + " MB";
  return bytes >= 1e3 ? (bytes / 1e3).toFixed(1) + " kB" : bytes + " B";
}
export function rateText(gbps: number): string {
  if (gbps >= 1000) return (gbps / 1000).toFixed(2) + " Tb/s";
  return gbps >= 1 ? gbps.toFixed(1) + " Gb/s" : (gbps * 1000).toFixed(1) + " Mb/s";
}
