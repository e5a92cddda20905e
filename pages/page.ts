// One page on one source: puts the parts together and redraws them.

import { ChartCanvas, chartsOf, plain } from "./charts";
import { Clock } from "./clock";
import { DARK, LIGHT } from "./colours";
import { canAct, deedOf, Details, hoverText, targetOf } from "./details";
import { FabricView, Hit } from "./fabric_view";
import { History, Lanes, STATES } from "./history";
import { Layout, microseconds, Place, rateText } from "./layout";
import { Source, SourceState, Verb } from "./source";
import { Move, readLine, StreamError } from "./stream";

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found as T;
}

// Numbers and charts beside the picture follow it so often: faster nobody reads them, and each time
// costs the browser more than a picture.
const SIDE_MS = 100;

export class Page {
  history: History | null = null;
  layout: Layout | null = null;
  view: FabricView | null = null;
  readonly clock = new Clock();
  pair: [number, number] | null = null;
  framesPerSecond = 0;
  private charts: ChartCanvas[] = [];
  private details: Details | null = null;
  private lastDraw = 0;
  private dirty = true;
  private sideDirty = true; // beside the picture something is older than in it
  private lastSide = -SIDE_MS;
  private state: SourceState = "connecting";
  private arranged = ""; // what the layout shows of a host
  private readonly cursor = document.createElement("div"); // the time shown, on all charts
  private drag: { x: number; y: number; moved: boolean } | null = null;
  private readonly canvas = element<HTMLCanvasElement>("fabric");
  private readonly slider = element<HTMLInputElement>("time");
  private dark = !window.matchMedia("(prefers-color-scheme: light)").matches;

  constructor(private readonly source: Source) {
    this.setTheme(this.dark);
    this.listen();
    source.start((line) => this.take(line), (state, why) => this.tell(state, why));
    window.requestAnimationFrame((now) => this.tick(now));
  }

  // A line of the source. A header begins anew, as after a server was started again.
  take(line: string): void {
    try {
      const read = readLine(line);
      if (read.kind === "header") this.begin(new History(read.header));
      else if (this.history !== null) this.history.add(read);
      if (read.kind === "silent") this.tell("silent", read.why);
      else if (this.state === "silent") this.tell("open", "");
      if (read.kind === "host" && this.history !== null) this.arrange(this.history);
      if (read.kind === "end" && this.history !== null) this.ended(this.history);
      if (read.kind === "gone") this.left(read.why);
    } catch (error) {
      if (!(error instanceof StreamError)) throw error;
      this.source.stop();
      this.say(error.message, true);
    }
    this.dirty = true;
    for (const chart of this.charts) chart.stale = true;
  }

  private begin(history: History): void {
    const same = JSON.stringify(this.history?.header) === JSON.stringify(history.header);
    const before = this.view;
    if (this.state === "gone") this.tell("open", "");
    this.history = history;
    this.arranged = "";
    this.arrange(history);
    // Told again, as to a tab that was hidden: what somebody looks at stays.
    if (same && before !== null && this.view !== null) {
      this.view.look(before);
    } else {
      this.pair = null;
      this.clock.following = true;
      element("details").replaceChildren();
    }
    const { header } = history;
    document.title = `MRC: ${header.title}`;
    element("title").textContent = header.title;
    element("command").textContent = element("command").title = header.command;
    this.makeDetails(history);
    this.touch();
  }

  // What can be broken has buttons.
  private makeDetails(history: History): void {
    const acts = this.acts(history);
    const act = (verb: Verb, target: string, value: string): void => void this.act(verb, target, value);
    const note = this.state === "gone" ? "It is gone; this is what it said last." : "";
    this.details = new Details(element("details"), acts ? act : null, note);
  }
  private acts(history: History): boolean {
    return history.header.acts && this.source.act !== undefined && this.state !== "gone";
  }

  // The source has nothing more to say; what it said stays to be looked at.
  private left(why: string): void {
    this.tell("gone", why);
    if (this.history !== null) this.makeDetails(this.history);
    this.touch();
  }

  // Lays out what there is; of a host, again when a program has come or gone.
  private arrange(history: History): void {
    const { names, planes } = history.devices();
    const wanted = JSON.stringify([...names, planes]);
    if (this.arranged === wanted) return;
    this.arranged = wanted;
    const shown = history.header.source === "host" ? Math.max(1, planes) : history.geometry.planes;
    const chosen = this.view?.chosen ?? null;
    this.layout = new Layout({ ...history.geometry, planes: shown }, names);
    this.view = new FabricView(this.canvas, this.layout, this.dark ? DARK : LIGHT);
    this.view.resize();
    if (chosen?.kind === "node" && names.has(chosen.place.node)) this.view.chosen = chosen;
    this.makeCharts(history, shown);
    const none = history.header.source === "host" && names.size === 0;
    this.say(none ? "no process with an MRC device runs here" : "", false);
  }

  private makeCharts(history: History, planes: number): void {
    const holder = element("charts");
    this.cursor.className = "cursor";
    holder.replaceChildren(this.cursor);
    this.charts = chartsOf(history, planes).map((chart) => {
      const canvas = document.createElement("canvas");
      canvas.className = "chart";
      const made = new ChartCanvas(canvas, chart);
      holder.append(canvas, made.legend);
      const point = (x: number): void => { made.pointer = x; made.stale = this.sideDirty = true; };
      canvas.addEventListener("mousemove", (e) => point(e.offsetX));
      canvas.addEventListener("mouseleave", () => point(-1));
      canvas.addEventListener("click", (e) => this.seek(made.timeAt(history, e.offsetX)));
      return made;
    });
  }

  private ended(history: History): void {
    this.say(history.note, false);
    this.clock.setNaturalSpeed(history.lastTime);
    this.clock.following = false;
    this.clock.time = history.lastTime;
    this.touch();
  }

  private tell(state: SourceState, why: string): void {
    this.state = state;
    element("state").textContent = state;
    element("state").className = state;
    if (state === "lost" || state === "silent" || state === "gone") this.say(why, true);
    if (state === "open") this.say("", false);
  }
  private say(text: string, bad: boolean): void {
    const note = element("note");
    note.textContent = note.title = text;
    note.className = bad ? "bad" : "";
  }

  async act(verb: Verb, target: string, value: string): Promise<void> {
    if (this.source.act === undefined) return;
    try {
      this.say(await this.source.act(verb, target, value), false);
    } catch (error) {
      // It may come from the window around this one, whose Error is another than ours.
      const told = (error as { message?: unknown } | null)?.message;
      this.say(typeof told === "string" && told !== "" ? told : `${verb} ${target}: refused`, true);
    }
  }

  seek(time: number): void {
    if (this.history === null) return;
    this.clock.seek(this.history, time);
    this.dirty = true;
  }

  // What is shown now, for people who read it and for tests.
  lanes(): Lanes | null {
    return this.history === null || this.history.frames.length === 0
      ? null : this.history.lanesAt(this.history.indexAt(this.clock.time));
  }

  private tick(now: number): void {
    const elapsed = Math.min(1000, now - this.lastDraw);
    this.lastDraw = now;
    const { history, view, clock } = this;
    if (history !== null && view !== null && history.frames.length > 0) {
      const before = clock.time;
      clock.advance(history, elapsed);
      if (clock.time !== before) this.dirty = true;
      if (this.dirty) this.draw(history, view);
      else if (this.sideDirty) this.drawSide(history, view);
    }
    if (elapsed > 0) this.framesPerSecond = this.framesPerSecond * 0.9 + (1000 / elapsed) * 0.1;
    window.requestAnimationFrame((at) => this.tick(at));
  }

  // Always the whole picture; also what a test measures.
  draw(history: History, view: FabricView): void {
    this.dirty = false;
    const lanes = history.lanesAt(history.indexAt(this.clock.time));
    view.draw(history, lanes, this.clock.time, this.movesNow(history));
    if (this.charts.length > 0) {
      const x = this.charts[0].xOf(history, this.clock.time);
      this.cursor.style.transform = `translateX(${Math.round(x)}px)`;
    }
    this.sideDirty = true;
    this.drawSide(history, view);
  }

  private drawSide(history: History, view: FabricView): void {
    const now = performance.now();
    if (now - this.lastSide < SIDE_MS) return;
    this.lastSide = now;
    this.sideDirty = false;
    for (const chart of this.charts) if (chart.stale) chart.draw(history, view.palette);
    const lanes = history.lanesAt(history.indexAt(this.clock.time));
    this.details?.show(history, view.layout, lanes, this.clock.time, view.chosen, this.pair);
    this.showFigures(history);
  }
  // What somebody did is seen at once.
  private touch(): void {
    this.dirty = true;
    this.lastSide = -SIDE_MS;
  }

  // Packets on their way now; only when time runs slowly enough to see them.
  private movesNow(history: History): Move[] {
    if (this.clock.following || history.moves.length === 0 || this.clock.speed > 1e-5) return [];
    const longest = 8_000;
    const shown: Move[] = [];
    const { rows, cables } = history.geometry;
    for (let i = history.movesFrom(this.clock.time - longest); i < history.moves.length; ++i) {
      const move = history.moves[i];
      if (move.at > this.clock.time || shown.length >= 20_000) break;
      const row = rows[cables[(move.lane >> 1) % cables.length]?.tier];
      if (row === undefined) continue;
      const way = move.flags >> 4 > 0 ? 200 : (move.bytes * 8) / Math.max(0.001, row.gbps) + row.delayNs;
      if (move.at + way >= this.clock.time) shown.push(move);
    }
    return shown;
  }

  private showFigures(history: History): void {
    const frame = history.frames[history.indexAt(this.clock.time)];
    const bytes = frame.planeBytes.reduce((sum, b) => sum + b, 0);
    const flows = history.header.flows > 0 ? ` of ${plain(history.header.flows)}` : "";
    element("figures").textContent = `${microseconds(this.clock.time)}   `
      + `${frame.span > 0 && this.state !== "gone" ? rateText((bytes * 8) / frame.span) : ""}   `
      + `${plain(frame.flowsEnded)}${flows} transfers   `
      + `${this.state === "gone" && this.clock.following ? "the last of it" : this.clock.text}`;
    this.slider.max = String(history.lastTime);
    if (document.activeElement !== this.slider || this.clock.playing)
      this.slider.value = String(this.clock.time);
  }

  setTheme(dark: boolean): void {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    if (this.view !== null) this.view.palette = dark ? DARK : LIGHT;
    this.redraw();
  }

  private redraw(): void {
    for (const chart of this.charts) chart.stale = true;
    this.touch();
  }

  private choose(hit: Hit, second: boolean): void {
    const { view, layout } = this;
    if (view === null || layout === null) return;
    const isHost = hit?.kind === "node" && layout.row(hit.place.node).kind === "host";
    const before = view.chosen;
    if (second && isHost && hit?.kind === "node" && before?.kind === "node"
        && layout.row(before.place.node).kind === "host" && before.place.node !== hit.place.node) {
      this.setPair([before.place.node, hit.place.node]);
      return;
    }
    view.chosen = hit;
    this.setPair(null);
  }
  setPair(pair: [number, number] | null): void {
    this.pair = pair;
    this.view?.choosePair(pair);
    this.touch();
  }

  // "t0:3", "host 12", "host:3 host:9", "t1:2/plane:1", "t0:0/t1:1/plane:1", "down": everything of
  // that state. What has exactly the name is chosen, or the only device that is named: whoever
  // breaks what is chosen then breaks nothing else.
  search(text: string): void {
    const { view, layout, history } = this;
    if (view === null || layout === null || history === null) return;
    const wanted = text.trim().toLowerCase();
    const named = [...wanted.matchAll(/(host|t0|t1|t2)\s*:?\s*(\d{1,7})/g)]
      .map((m) => layout.nodeOf(m[1], Number(m[2]))).filter((node) => node >= 0);
    if (history.header.source === "host" && wanted !== "") named.push(...layout.named(wanted));
    const plane = /plane\s*:?\s*(\d{1,3})/.exec(wanted);
    const places = (node: number): Place[] =>
      Array.from({ length: layout.geometry.planes }, (_, p) => ({ plane: p, node }))
        .filter((p) => plane === null || p.plane === Number(plane[1]));
    view.found = named.flatMap(places);
    const state = STATES.indexOf(wanted);
    if (state > 0) view.found = this.endsOf(layout, state);
    const cable = layout.cableOf(wanted);
    const isPart = wanted.replace(/\/plane.*/, "").includes("/"); // of the name of a cable
    const isPair = named.length === 2 && named[0] !== named[1] && !isPart
      && named.every((n) => layout.row(n).kind === "host");
    if (isPair) this.setPair([named[0], named[1]]);
    else if (cable !== null) { view.chosen = cable; view.found = []; }
    else if (!isPart && new Set(named).size === 1 && view.found.length > 0)
      view.chosen = { kind: "node", place: view.found[0] };
    else if (wanted !== "") view.chosen = null;
    const found = cable !== null ? 1 : view.found.length;
    element("found").textContent = wanted === "" ? "" : `${found} found`;
    this.touch();
  }
  private endsOf(layout: Layout, state: number): Place[] {
    const lanes = this.lanes();
    const { cables, planes } = layout.geometry;
    const ends: Place[] = [];
    for (let i = 0; lanes !== null && i < cables.length * planes; ++i)
      if (lanes.state[2 * i] === state || lanes.state[2 * i + 1] === state)
        for (const node of [cables[i % cables.length].lower, cables[i % cables.length].upper])
          ends.push({ plane: Math.floor(i / cables.length), node });
    return ends;
  }

  private listen(): void {
    this.listenToPointer();
    window.addEventListener("resize", () => { this.view?.resize(); this.redraw(); });
    window.addEventListener("keydown", (e) => this.onKey(e));
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    const search = element<HTMLInputElement>("search");
    search.addEventListener("input", () => this.search(search.value));
    element("play").addEventListener("click", () => { this.key(" "); });
    element("slower").addEventListener("click", () => { this.key(","); });
    element("faster").addEventListener("click", () => { this.key("."); });
    element("live").addEventListener("click", () => { this.key("End"); });
    element("theme").addEventListener("click", () => { this.key("t"); });
    element("help").addEventListener("click", () => { this.key("?"); });
  }

  private listenToPointer(): void {
    const c = this.canvas;
    c.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.view?.zoom(Math.exp(-e.deltaY * 0.0015), { x: e.offsetX, y: e.offsetY });
      this.dirty = true;
    }, { passive: false });
    c.addEventListener("mousedown", (e) => { this.drag = { x: e.offsetX, y: e.offsetY, moved: false }; });
    c.addEventListener("mousemove", (e) => this.onMove(e));
    c.addEventListener("mouseup", (e) => {
      if (this.drag !== null && !this.drag.moved && this.view !== null)
        this.choose(this.view.hit({ x: e.offsetX, y: e.offsetY }), e.shiftKey);
      this.drag = null;
      this.dirty = true;
    });
    c.addEventListener("mouseleave", () => { this.drag = null; this.hover(null, 0, 0); });
    c.addEventListener("dblclick", () => { this.view?.fit(); this.dirty = true; });
  }
  private onMove(e: MouseEvent): void {
    if (this.view === null) return;
    if (this.drag === null) {
      this.hover(this.view.hit({ x: e.offsetX, y: e.offsetY }), e.offsetX, e.offsetY);
      return;
    }
    const dx = e.offsetX - this.drag.x;
    const dy = e.offsetY - this.drag.y;
    if (!this.drag.moved && Math.hypot(dx, dy) < 4) return;
    this.view.move(dx, dy);
    this.drag = { x: e.offsetX, y: e.offsetY, moved: true };
    this.dirty = true;
  }
  private hover(hit: Hit, x: number, y: number): void {
    const { view, layout } = this;
    const lanes = this.lanes();
    if (view === null || layout === null || lanes === null) return;
    view.hovered = hit;
    const tip = element("tip");
    tip.textContent = hoverText(layout, lanes, hit);
    tip.hidden = hit === null;
    tip.style.left = `${x + 14}px`;
    tip.style.top = `${y + 14}px`;
    this.dirty = true;
  }

  private onKey(e: KeyboardEvent): void {
    if (e.target instanceof HTMLInputElement && e.target.type !== "range") {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (this.key(e.key)) e.preventDefault();
  }

  key(key: string): boolean {
    const { history, view, layout, clock } = this;
    if (history === null || view === null || layout === null) return false;
    const step = (by: number): void => {
      const to = Math.max(0, Math.min(history.frames.length - 1, history.indexAt(clock.time) + by));
      this.seek(history.frames[to].at);
    };
    const deed = deedOf(key);
    const middle = { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 };
    if (key === " ") clock.toggle(history);
    else if (key === "ArrowLeft") step(-1);
    else if (key === "ArrowRight") step(1);
    else if (key === "Home") this.seek(0);
    else if (key === "End") { clock.playing = false; clock.following = true; }
    else if (key === ",") clock.faster(-1);
    else if (key === ".") clock.faster(1);
    else if (key === "+" || key === "=") view.zoom(1.3, middle);
    else if (key === "-") view.zoom(1 / 1.3, middle);
    else if (key === "0") view.fit();
    else if (key === "/") element("search").focus();
    else if (key === "t") this.setTheme(!this.dark);
    else if (key === "?") element("keys").hidden = !element("keys").hidden;
    else if (key === "Escape") { view.chosen = null; view.found = []; this.setPair(null); }
    else if (deed !== undefined && this.acts(history) && canAct(layout, view.chosen))
      void this.act(deed.verb, targetOf(layout, view.chosen), deed.value);
    else return false;
    this.touch();
    return true;
  }
}
