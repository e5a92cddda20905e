// The fabric on a canvas: cables coloured by load and state, queues, nodes, the chosen pair, packets.

import { LOAD_STEPS, Palette } from "./colours";
import { DOWN, History, Lanes } from "./history";
import { Layout, PLANE_GAP, PLANE_WIDTH, Place, Point } from "./layout";
import { Move } from "./stream";

export type Hit = { kind: "node"; place: Place } | { kind: "cable"; plane: number; cable: number } | null;

const NEAR = 7; // pixels within which a click means a cable
const CROWD = 1000; // dots, or lanes with queues
const MANY = 2000; // cables; of so many none is wide for its load alone
const PACKET_COLOURS = ["#7fd0ff", "#c9f27b", "#ffb04d", "#ff5d5d"]; // data, control, marked, cut or lost

export class FabricView {
  private scale = 1;
  private left = 0;
  private top = 0;
  private readonly context: CanvasRenderingContext2D;
  private readonly ends: Float32Array; // of each cable of each plane: x, y below; x, y above
  hovered: Hit = null;
  chosen: Hit = null;
  pair: [number, number] | null = null; // host nodes
  found: Place[] = [];
  drawn = 0; // pictures so far
  private readonly fixed = document.createElement("canvas"); // nodes and labels, see drawFixed
  private fixedKey = "";
  private litCables = new Map<number, number>(); // drawn cable -> worst state of its way

  constructor(readonly canvas: HTMLCanvasElement, readonly layout: Layout, public palette: Palette) {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null) throw new Error("this browser draws nothing");
    this.context = context;
    const { cables, planes } = layout.geometry;
    this.ends = new Float32Array(4 * cables.length * planes);
    for (let plane = 0; plane < planes; ++plane)
      cables.forEach((cable, number) => {
        const below = layout.at(plane, cable.lower);
        const above = layout.at(plane, cable.upper);
        this.ends.set([below.x, below.y, above.x, above.y], 4 * (plane * cables.length + number));
      });
    this.fit();
  }

  fit(): void {
    const { width, height } = this.size();
    const heading = 34;
    this.scale = Math.min(width / (this.layout.width + 40), (height - heading) / this.layout.height);
    // Few planes leave room to the sides; many leave it above: the drawing stretches in y only.
    this.left = (width - this.layout.width * this.scale) / 2;
    this.stretch = Math.max(1, Math.min(8, (height - heading) / (this.layout.height * this.scale)));
    this.top = heading;
  }
  private stretch = 1;
  // As another one of the same fabric: the same part of it, and what is chosen there.
  look(other: FabricView): void {
    this.chosen = other.chosen;
    this.found = other.found;
    this.pair = other.pair;
    [this.scale, this.left, this.top, this.stretch] = [other.scale, other.left, other.top, other.stretch];
  }

  private size(): { width: number; height: number } {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }
  resize(): void {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.size();
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.fit();
  }
  zoom(factor: number, at: Point): void {
    const next = Math.min(60, Math.max(0.02, this.scale * factor));
    const real = next / this.scale;
    this.left = at.x - (at.x - this.left) * real;
    this.top = at.y - (at.y - this.top) * real;
    this.scale = next;
  }
  move(dx: number, dy: number): void {
    this.left += dx;
    this.top += dy;
  }
  centre(place: Place): void {
    const { width, height } = this.size();
    const at = this.onScreen(this.layout.at(place.plane, place.node));
    this.move(width / 2 - at.x, height / 2 - at.y);
  }
  onScreen(p: Point): Point {
    return { x: this.left + p.x * this.scale, y: this.top + p.y * this.scale * this.stretch };
  }
  cableEnds(plane: number, cable: number): [Point, Point] {
    const i = 4 * (plane * this.layout.geometry.cables.length + cable);
    return [this.onScreen({ x: this.ends[i], y: this.ends[i + 1] }),
            this.onScreen({ x: this.ends[i + 2], y: this.ends[i + 3] })];
  }

  choosePair(pair: [number, number] | null): void { this.pair = pair; }

  // Draws one picture; `moves` are those under way at `time`.
  draw(history: History, lanes: Lanes, time: number, moves: Move[]): void {
    const c = this.context;
    const ratio = this.canvas.width / Math.max(1, this.canvas.clientWidth);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = this.palette.background;
    c.fillRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    this.lightPair(lanes);
    this.drawCables(lanes);
    this.drawQueues(lanes);
    this.drawFixed(ratio);
    this.frameNodes();
    this.drawMoves(history, time, moves);
    ++this.drawn;
  }

  private lightPair(lanes: Lanes): void {
    this.litCables.clear();
    if (this.pair === null) return;
    const { cables, planes } = this.layout.geometry;
    for (const way of this.layout.ways(this.pair[0], this.pair[1]))
      for (let plane = 0; plane < planes; ++plane) {
        const up = way.up.map((cable) => lanes.state[this.layout.laneUp(plane, cable)]);
        const down = way.down.map((cable) => lanes.state[this.layout.laneUp(plane, cable) + 1]);
        const worst = Math.max(0, ...up, ...down);
        for (const cable of [...way.up, ...way.down]) {
          const key = plane * cables.length + cable;
          this.litCables.set(key, Math.min(worst, this.litCables.get(key) ?? worst));
        }
      }
  }

  // What decides how a cable is drawn: its worse state, else the greater load of both directions.
  cableLook(lanes: Lanes, drawn: number): { state: number; load: number } {
    const state = Math.max(lanes.state[2 * drawn], lanes.state[2 * drawn + 1]);
    const load = Math.max(lanes.load[2 * drawn], lanes.load[2 * drawn + 1]);
    return { state, load };
  }

  // One path per colour: thousands of cables in a dozen strokes. Lines of at most one pixel are
  // drawn several times faster than wider ones where no GPU helps, so a busy or broken cable is two
  // of them side by side.
  private drawCables(lanes: Lanes): void {
    const c = this.context;
    const total = this.ends.length / 4;
    const ways: Path2D[] = Array.from({ length: LOAD_STEPS + 1 + DOWN + 1 }, () => new Path2D());
    const used = new Uint8Array(ways.length);
    const dim = this.pair !== null;
    const { cables } = this.layout.geometry;
    const twiceFrom = total > MANY ? LOAD_STEPS + 2 : LOAD_STEPS / 2 + 1;
    for (let i = 0; i < total; ++i) {
      if (!this.layout.isShown(cables[i % cables.length].lower)) continue;
      const { state, load } = this.cableLook(lanes, i);
      const bucket = state > 0 ? LOAD_STEPS + 1 + state : Math.ceil((load * LOAD_STEPS) / 1000);
      const e = 4 * i;
      const x1 = this.left + this.ends[e] * this.scale;
      const y1 = this.top + this.ends[e + 1] * this.scale * this.stretch;
      const x2 = this.left + this.ends[e + 2] * this.scale;
      const y2 = this.top + this.ends[e + 3] * this.scale * this.stretch;
      ways[bucket].moveTo(x1, y1);
      ways[bucket].lineTo(x2, y2);
      used[bucket] = 1;
      if (bucket < twiceFrom) continue;
      const [dx, dy] = Math.abs(x2 - x1) < Math.abs(y2 - y1) ? [1, 0] : [0, 1];
      ways[bucket].moveTo(x1 + dx, y1 + dy);
      ways[bucket].lineTo(x2 + dx, y2 + dy);
    }
    c.globalAlpha = dim ? 0.25 : total > MANY ? 0.7 : 1;
    ways.forEach((way, bucket) => {
      if (used[bucket] === 0) return;
      const state = bucket - LOAD_STEPS - 1;
      c.strokeStyle = state > 0 ? this.palette.state[state] : this.palette.load[bucket];
      c.lineWidth = state > 0 ? 1 : Math.min(1, 0.6 + bucket * 0.16);
      c.globalAlpha = state > 0 ? 1 : c.globalAlpha;
      c.stroke(way);
    });
    c.globalAlpha = 1;
    this.drawLit();
    for (const hit of [this.hovered, this.chosen])
      if (hit?.kind === "cable") this.drawChosen(lanes, hit.plane, hit.cable);
  }
  // Framed, so that its state stays to be seen.
  private drawChosen(lanes: Lanes, plane: number, cable: number): void {
    const drawn = plane * this.layout.geometry.cables.length + cable;
    const { state, load } = this.cableLook(lanes, drawn);
    const colour = state > 0 ? this.palette.state[state]
      : this.palette.load[Math.ceil((load * LOAD_STEPS) / 1000)];
    this.stroke(plane, cable, this.palette.chosen, 6);
    this.stroke(plane, cable, colour, 3.5);
  }

  private drawLit(): void {
    const count = this.layout.geometry.cables.length;
    for (const [key, state] of this.litCables) {
      const colour = state > 0 ? this.palette.state[state] : "#4fd06e";
      this.stroke(Math.floor(key / count), key % count, colour, 2.2);
    }
  }
  private stroke(plane: number, cable: number, colour: string, width: number): void {
    const [a, b] = this.cableEnds(plane, cable);
    this.context.strokeStyle = colour;
    this.context.lineWidth = width;
    this.context.beginPath();
    this.context.moveTo(a.x, a.y);
    this.context.lineTo(b.x, b.y);
    this.context.stroke();
  }

  // A queue is a dot at the sending end of its lane, as large as it is full.
  private drawQueues(lanes: Lanes): void {
    const count = this.layout.geometry.cables.length;
    this.context.fillStyle = this.palette.queue;
    for (let lane = 0; lane < lanes.queue.length; ++lane) {
      const bytes = lanes.queue[lane];
      if (bytes < 2048) continue;
      const drawn = lane >> 1;
      const [below, above] = this.cableEnds(Math.floor(drawn / count), drawn % count);
      const [from, to] = (lane & 1) === 0 ? [below, above] : [above, below];
      const radius = Math.min(7, 1 + Math.sqrt(bytes / 1024) * 0.3);
      this.disc(from.x + (to.x - from.x) * 0.08, from.y + (to.y - from.y) * 0.08, radius,
                lanes.queue.length > CROWD);
    }
  }
  // Of whole pixels, three rectangles instead of a circle, which costs several times as much; in a
  // crowd one.
  private disc(x: number, y: number, radius: number, crowd: boolean): void {
    const c = this.context;
    const cx = Math.round(x);
    const cy = Math.round(y);
    const r = Math.round(radius);
    if (crowd) {
      const side = Math.round(1.7 * r);
      c.fillRect(Math.round(cx - side / 2), Math.round(cy - side / 2), side, side);
      return;
    }
    const half = Math.max(1, Math.round(r * 0.45));
    c.fillRect(cx - r, cy - half, 2 * r, 2 * half);
    c.fillRect(cx - half, cy - r, 2 * half, 2 * r);
    const side = Math.round(r * 0.75);
    if (r > 2) c.fillRect(cx - side, cy - side, 2 * side, 2 * side);
  }

  // What stays while time goes on is drawn once, and put above the cables of each picture.
  private drawFixed(ratio: number): void {
    const { width, height } = this.canvas;
    const key = [width, height, ratio, this.left, this.top, this.scale, this.stretch,
                 this.palette.background, this.pair].join(" ");
    if (key !== this.fixedKey) {
      this.fixedKey = key;
      this.fixed.width = width;
      this.fixed.height = height;
      const c = this.fixed.getContext("2d");
      if (c === null) throw new Error("this browser draws nothing");
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.drawNodes(c);
      this.drawLabels(c);
    }
    this.context.drawImage(this.fixed, 0, 0, width / ratio, height / ratio);
  }

  private drawNodes(c: CanvasRenderingContext2D): void {
    const { planes, nodes } = this.layout.geometry;
    c.lineWidth = 1;
    const lit = (place: Place): boolean =>
      this.pair !== null && this.pair.includes(place.node);
    for (let plane = 0; plane < planes; ++plane)
      for (let node = 0; node < nodes; ++node) {
        if (!this.layout.isShown(node)) continue;
        const at = this.onScreen(this.layout.at(plane, node));
        const width = Math.max(1.5, Math.min(70, this.layout.room(node) * this.scale * 0.8));
        const height = Math.max(3, Math.min(16, width));
        c.fillStyle = lit({ plane, node }) ? "#4fd06e" : this.palette.node;
        c.fillRect(at.x - width / 2, at.y - height / 2, width, height);
        if (width < 4) continue;
        c.strokeStyle = this.palette.nodeEdge;
        c.strokeRect(at.x - width / 2, at.y - height / 2, width, height);
        if (width > 16) this.labelNode(c, node, at, width);
      }
  }
  private frameNodes(): void {
    for (const hit of [this.hovered, this.chosen])
      if (hit?.kind === "node") this.frameNode(hit.place, this.palette.chosen);
    for (const place of this.found) this.frameNode(place, "#ffd84d");
  }
  // The number of a device or those of several; of programs the name, and which process it is.
  private labelNode(c: CanvasRenderingContext2D, node: number, at: Point, width: number): void {
    const row = this.layout.row(node);
    const size = Math.min(11, width / 2.4);
    if (row.kind === "device") {
      const [name, pid] = this.layout.device(node).split(" ");
      this.label(c, name, at.x, at.y, size, this.palette.text);
      this.label(c, pid, at.x, at.y + 18, size, this.palette.faint);
    } else if (row.kind !== "network") {
      this.label(c, row.fold === 1 ? String(node - row.first) : this.layout.device(node).split(":")[1],
        at.x, at.y, size, this.palette.text);
    }
  }
  private frameNode(place: Place, colour: string): void {
    const at = this.onScreen(this.layout.at(place.plane, place.node));
    const width = Math.max(6, Math.min(74, this.layout.room(place.node) * this.scale * 0.8 + 4));
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2;
    this.context.strokeRect(at.x - width / 2, at.y - 10, width, 20);
  }
  private label(c: CanvasRenderingContext2D, text: string, x: number, y: number, size: number,
                colour: string): void {
    c.font = `${Math.round(size)}px system-ui, sans-serif`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillStyle = colour;
    c.fillText(text, x, y);
  }

  private drawLabels(c: CanvasRenderingContext2D): void {
    const { planes, rows } = this.layout.geometry;
    const pitch = (PLANE_WIDTH + PLANE_GAP) * this.scale;
    const wide = pitch >= 62;
    const every = Math.max(1, Math.ceil(20 / pitch));
    for (let plane = 0; plane < planes; ++plane) {
      const at = this.onScreen({ x: plane * (PLANE_WIDTH + PLANE_GAP) + PLANE_WIDTH / 2, y: 0 });
      if (plane % every > 0) continue;
      this.label(c, wide ? `plane ${plane}` : `${plane}`, at.x, Math.max(16, at.y - 14), 13, this.palette.text);
    }
    c.textAlign = "left";
    c.font = "11px system-ui, sans-serif";
    c.fillStyle = this.palette.faint;
    rows.forEach((row, r) => {
      if (row.kind === "network") return;
      const y = this.onScreen(this.layout.at(0, row.first)).y;
      const many = row.fold > 1 ? `${row.count} in groups of ${row.fold}` : `${this.layout.shownIn(r)}`;
      const text = `${row.kind.toUpperCase()} x ${many}`;
      // Cables end where it stands.
      c.fillStyle = this.palette.background;
      c.fillRect(5, y - 26, c.measureText(text).width + 6, 16);
      c.fillStyle = this.palette.faint;
      c.fillText(text, 8, y - 18);
    });
  }

  private drawMoves(history: History, time: number, moves: Move[]): void {
    const c = this.context;
    const { cables, rows } = history.geometry;
    const count = cables.length;
    let last = -1;
    for (const move of moves) {
      const drawn = move.lane >> 1;
      const cable = cables[drawn % count];
      if (cable === undefined) continue;
      const row = rows[cable.tier];
      const fate = move.flags >> 4;
      const way = (move.bytes * 8) / Math.max(0.001, row.gbps) + row.delayNs;
      const share = fate > 0 ? 1 : Math.min(1, Math.max(0, (time - move.at) / way));
      const [below, above] = this.cableEnds(Math.floor(drawn / count), drawn % count);
      const [from, to] = (move.lane & 1) === 0 ? [below, above] : [above, below];
      const kind = fate > 0 || (move.flags & 2) !== 0 ? 3
        : (move.flags & 4) !== 0 ? 2 : (move.flags & 1) !== 0 ? 1 : 0;
      if (kind !== last) c.fillStyle = PACKET_COLOURS[last = kind];
      const size = fate > 0 ? 6 : (move.flags & 1) !== 0 ? 2.4 : 4;
      this.disc(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share, size,
                moves.length > CROWD);
    }
  }

  // What is at this place of the canvas: a node before a cable.
  hit(at: Point): Hit {
    const { planes, nodes, cables } = this.layout.geometry;
    for (let plane = 0; plane < planes; ++plane)
      for (let node = 0; node < nodes; ++node) {
        if (!this.layout.isShown(node)) continue;
        const p = this.onScreen(this.layout.at(plane, node));
        const half = Math.max(4, Math.min(35, this.layout.room(node) * this.scale * 0.4));
        if (Math.abs(p.x - at.x) <= half && Math.abs(p.y - at.y) <= 10)
          return { kind: "node", place: { plane, node } };
      }
    let best: Hit = null;
    let nearest = NEAR;
    for (let plane = 0; plane < planes; ++plane)
      for (let cable = 0; cable < cables.length; ++cable) {
        if (!this.layout.isShown(cables[cable].lower)) continue;
        const [a, b] = this.cableEnds(plane, cable);
        const d = distance(at, a, b);
        if (d < nearest) {
          nearest = d;
          best = { kind: "cable", plane, cable };
        }
      }
    return best;
  }
}

function distance(p: Point, a: Point, b: Point): number {
  const dx = b.x - a.x;
  const dy = b.y - a.y;
  const length = dx * dx + dy * dy;
  const share = length === 0 ? 0
    : Math.min(1, Math.max(0, ((p.x - a.x) * dx + (p.y - a.y) * dy) / length));
  return Math.hypot(p.x - a.x - share * dx, p.y - a.y - share * dy);
}
