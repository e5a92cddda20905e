// What is chosen, in numbers; in a lab also what may be done to it.

import { Hit } from "./fabric_view";
import { History, Lanes, STATES } from "./history";
import { bytesText, Layout, microseconds, rateText } from "./layout";
import { Cells, tablesOf } from "./reports";
import { Verb } from "./source";

export type Act = (verb: Verb, target: string, value: string) => void;

const DEEDS: { verb: Verb; label: string; value: string; key: string }[] = [
  { verb: "cut", label: "cut", value: "", key: "c" },
  { verb: "degrade", label: "25 % rate", value: "25%", key: "d" },
  { verb: "loss", label: "lose 1 %", value: "1%", key: "l" },
  { verb: "flap", label: "flap", value: "100ms/400ms", key: "f" },
  { verb: "heal", label: "heal", value: "", key: "h" },
];
export function deedOf(key: string): { verb: Verb; value: string } | undefined {
  return DEEDS.find((deed) => deed.key === key);
}

export function targetOf(layout: Layout, hit: Hit): string {
  if (hit === null) return "";
  return hit.kind === "node" ? layout.name(hit.place) : layout.cableName(hit.plane, hit.cable);
}
// A fault names one cable, switch or port, never a group.
export function canAct(layout: Layout, hit: Hit): boolean {
  if (hit === null) return false;
  if (hit.kind === "node") return layout.isSingle(hit.place.node);
  const cable = layout.geometry.cables[hit.cable];
  return cable.links === 1 && layout.isSingle(cable.lower);
}

export function laneText(layout: Layout, lanes: Lanes, lane: number): string {
  const cable = layout.geometry.cables[(lane >> 1) % layout.geometry.cables.length];
  const { gbps, kind } = layout.geometry.rows[cable.tier];
  const load = `${(lanes.load[lane] / 10).toFixed(1)} %`;
  if (kind === "device") return `${load} of its rate, ${STATES[lanes.state[lane]]}`;
  return `${load} (${rateText((gbps * cable.links * lanes.load[lane]) / 1000)}), `
    + `${bytesText(lanes.queue[lane])} waiting, ${STATES[lanes.state[lane]]}`;
}

export function hoverText(layout: Layout, lanes: Lanes, hit: Hit): string {
  if (hit === null) return "";
  if (hit.kind === "node") return layout.name(hit.place);
  const up = layout.laneUp(hit.plane, hit.cable);
  return `${layout.cableName(hit.plane, hit.cable)}\nup: ${laneText(layout, lanes, up)}\n`
    + `down: ${laneText(layout, lanes, up + 1)}`;
}

function table(rows: Cells): HTMLTableElement {
  const made = document.createElement("table");
  for (const cells of rows) {
    const row = made.insertRow();
    for (const cell of cells) row.insertCell().textContent = cell;
  }
  return made;
}

function heading(text: string): HTMLHeadingElement {
  const made = document.createElement("h2");
  made.textContent = text;
  return made;
}

// Counters of one direction. A simulation counts marks of all links together only; a device counts
// what it sends.
function tallyText(history: History, lanes: Lanes, lane: number): string {
  if (history.header.source === "host")
    return (lane & 1) === 1 ? "" : `${lanes.marks[lane]} marked, ${lanes.drops[lane]} taken for lost`;
  const marks = history.header.source === "sim" ? "" : `${lanes.marks[lane]} marked, `;
  return `${marks}${lanes.trims[lane]} trimmed, ${lanes.drops[lane]} dropped`;
}

function cableRows(history: History, layout: Layout, lanes: Lanes, plane: number,
                   cable: number): Cells {
  const up = layout.laneUp(plane, cable);
  return [["upwards", laneText(layout, lanes, up)], ["", tallyText(history, lanes, up)],
          ["downwards", laneText(layout, lanes, up + 1)], ["", tallyText(history, lanes, up + 1)],
          ["links", String(layout.geometry.cables[cable].links)]];
}

function nodeRows(layout: Layout, lanes: Lanes, plane: number, node: number): Cells {
  const rows: Cells = [];
  for (const cable of [...layout.upper[node], ...layout.lower[node]]) {
    if (!layout.isShown(layout.geometry.cables[cable].lower)) continue;
    const up = layout.laneUp(plane, cable);
    const worst = Math.max(lanes.state[up], lanes.state[up + 1]);
    rows.push([layout.cableName(plane, cable),
      `${(lanes.load[up] / 10).toFixed(0)} % up, ${(lanes.load[up + 1] / 10).toFixed(0)} % down`
      + (worst > 0 ? `, ${STATES[worst]}` : "")]);
    if (rows.length >= 64) break;
  }
  return rows;
}

function flowRows(history: History, layout: Layout, node: number, time: number): Cells {
  const row = layout.row(node);
  if (row.kind !== "host") return [];
  const of = (host: number): boolean => layout.nodeOf("host", host) === node;
  return history.flows.filter((f) => f.ended <= time && (of(f.source) || of(f.destination)))
    .slice(-20).map((f) => [`${f.source} to ${f.destination}`,
      `${bytesText(f.bytes)} in ${microseconds(f.ended - f.started)}${f.ok ? "" : ", failed"}`]);
}

// The ways of the pair with their states: what a sender's table of EVs is about.
export function pairRows(layout: Layout, lanes: Lanes, pair: [number, number]): Cells {
  const { cables, planes } = layout.geometry;
  const rows: Cells = [];
  for (let plane = 0; plane < planes; ++plane)
    for (const way of layout.ways(pair[0], pair[1])) {
      const states = [...way.up.map((c) => lanes.state[layout.laneUp(plane, c)]),
                      ...way.down.map((c) => lanes.state[layout.laneUp(plane, c) + 1])];
      const loads = [...way.up.map((c) => lanes.load[layout.laneUp(plane, c)]),
                     ...way.down.map((c) => lanes.load[layout.laneUp(plane, c) + 1])];
      const top = layout.device(cables[way.up[way.up.length - 1]].upper);
      rows.push([`plane ${plane} by ${top}`,
        `${STATES[Math.max(...states)]}, busiest link ${(Math.max(...loads) / 10).toFixed(0)} %`]);
      if (rows.length >= 256) return rows;
    }
  return rows;
}

export class Details {
  private shown = "";
  private chosen = "";
  private readonly head = document.createElement("div");
  private readonly body = document.createElement("div");

  // `note` stands above the numbers. What the panel shows stays until there is something to show.
  constructor(private readonly panel: HTMLElement, private readonly act: Act | null,
              private readonly note: string) {}

  show(history: History, layout: Layout, lanes: Lanes, time: number, hit: Hit,
       pair: [number, number] | null): void {
    const chosen = JSON.stringify([hit, pair]);
    const nothing = hit === null && pair === null;
    const key = nothing ? chosen : `${chosen} ${history.indexAt(time)} ${history.frames.length}`;
    if (key === this.shown) return;
    if (this.shown === "") this.panel.replaceChildren(this.head, this.body);
    this.shown = key;
    // Buttons stay while numbers change: one that is made anew loses the click that is under way.
    if (chosen !== this.chosen) this.showHead(layout, hit);
    this.chosen = chosen;
    this.body.replaceChildren();
    if (this.note !== "" && !nothing) this.body.append(this.note);
    if (hit !== null) this.showHit(history, layout, lanes, time, hit);
    if (pair !== null)
      this.table(`paths from ${layout.device(pair[0])} to ${layout.device(pair[1])}`,
                 pairRows(layout, lanes, pair));
    if (nothing) this.hint();
  }

  private showHead(layout: Layout, hit: Hit): void {
    this.head.replaceChildren();
    if (hit === null) return;
    this.head.append(heading(targetOf(layout, hit)));
    if (this.act !== null && canAct(layout, hit)) this.buttons(targetOf(layout, hit), this.act);
  }

  private hint(): void {
    const text = document.createElement("p");
    text.textContent = "Click a cable, switch or port. Click a host, then with Shift another one, "
      + "for the paths between them. Keys: ? for all.";
    this.body.append(text);
  }
  private table(title: string, rows: Cells): void {
    if (rows.length > 0) this.body.append(heading(title), table(rows));
  }

  private showHit(history: History, layout: Layout, lanes: Lanes, time: number,
                  hit: NonNullable<Hit>): void {
    if (hit.kind === "cable") {
      this.body.append(table(cableRows(history, layout, lanes, hit.plane, hit.cable)));
      return;
    }
    const { node, plane } = hit.place;
    this.body.append(table(nodeRows(layout, lanes, plane, node)));
    this.table("transfers that ended", flowRows(history, layout, node, time));
    if (!["host", "device"].includes(layout.row(node).kind) || !layout.isSingle(node)) return;
    const report = history.reportAt(node - layout.row(node).first, time);
    for (const each of report === undefined ? [] : tablesOf(report)) this.table(each.title, each.rows);
  }

  private buttons(target: string, act: Act): void {
    const row = document.createElement("div");
    row.className = "deeds";
    for (const deed of DEEDS) {
      const button = document.createElement("button");
      button.textContent = deed.label;
      button.title = `key ${deed.key}`;
      button.dataset.verb = deed.verb;
      button.addEventListener("click", () => act(deed.verb, target, deed.value));
      row.append(button);
    }
    this.head.append(row);
  }
}
