// Lines over time on small canvases, with faults as marks. What time is shown is a line above all of
// them (page.ts), so that they are drawn anew only for what they tell.

import { Palette } from "./colours";
import { History } from "./history";
import { microseconds } from "./layout";
import { Frame } from "./stream";

export interface Series { name: string; of: (frame: Frame) => number }
export interface Chart { title: string; unit: string; series: Series[] }

function rate(index: number): (frame: Frame, before: Frame | undefined) => number {
  return (frame, before) => Math.max(0, frame.counters[index] - (before?.counters[index] ?? 0));
}

// What the header promises, as charts: goodput per plane first, then a chart per group.
export function chartsOf(history: History, planes: number): Chart[] {
  const { header } = history;
  const charts: Chart[] = [{
    title: "goodput per plane", unit: "Gb/s",
    series: Array.from({ length: planes }, (_, plane) => ({
      name: `plane ${plane}`,
      of: (f) => (f.span > 0 ? (f.planeBytes[plane] * 8) / f.span : 0),
    })),
  }];
  const groups = new Map<string, Series[]>();
  const before = new WeakMap<Frame, Frame>();
  const link = (frame: Frame): Frame | undefined => {
    const known = before.get(frame);
    if (known !== undefined) return known;
    const i = history.indexAt(frame.at);
    if (i > 0) before.set(frame, history.frames[i - 1]);
    return i > 0 ? history.frames[i - 1] : undefined;
  };
  const add = (group: string, series: Series): void => {
    groups.set(group, [...(groups.get(group) ?? []), series]);
  };
  header.counters.forEach(([group, name], i) => {
    const grown = rate(i);
    add(`${group} per frame`, { name, of: (frame) => grown(frame, link(frame)) });
  });
  header.gauges.forEach(([group, name], i) => add(group, { name, of: (f) => f.gauges[i] ?? 0 }));
  for (const [title, series] of groups) charts.push({ title, unit: "", series });
  if (header.source === "sim") charts.push({
    title: "slowest completion", unit: "us",
    series: [{ name: "us", of: (f) => Math.max(0, ...f.flows.map((x) => (x.ended - x.started) / 1e3)) }],
  });
  return charts;
}

export class ChartCanvas {
  private readonly context: CanvasRenderingContext2D;
  pointer = -1; // pixels from the left while somebody points at it
  stale = true;
  readonly legend = document.createElement("div"); // which line is which; empty where there is one

  constructor(readonly canvas: HTMLCanvasElement, readonly chart: Chart) {
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("this browser draws nothing");
    this.context = context;
    this.legend.className = "legend";
    if (chart.series.length > 1)
      for (const series of chart.series) {
        const entry = document.createElement("span");
        entry.textContent = series.name;
        this.legend.append(entry);
      }
  }

  timeAt(history: History, x: number): number {
    return this.first(history) + ((x - 4) / Math.max(1, this.canvas.clientWidth - 8)) * this.span(history);
  }
  xOf(history: History, time: number): number {
    return 4 + ((time - this.first(history)) / this.span(history)) * (this.canvas.clientWidth - 8);
  }
  private first(history: History): number { return history.frames[0]?.at ?? 0; }
  private span(history: History): number { return Math.max(1, history.lastTime - this.first(history)); }

  draw(history: History, palette: Palette): void {
    this.stale = false;
    const c = this.context;
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const first = this.first(history);
    const span = this.span(history);
    const x = (at: number): number => 4 + ((at - first) / span) * (width - 8);
    const columns = this.columns(history, Math.max(2, Math.floor(width / 2)));
    const most = Math.max(1e-9, ...columns.values.flat());
    this.drawFaults(history, x, height);
    Array.from(this.legend.children).forEach((entry, s) => {
      (entry as HTMLElement).style.color = palette.series[s % palette.series.length];
    });
    this.chart.series.forEach((_, s) => {
      c.strokeStyle = palette.series[s % palette.series.length];
      c.lineWidth = 1; // wider ones cost several times as much (fabric_view.ts)
      c.beginPath();
      columns.values[s].forEach((value, i) => {
        const y = height - 3 - (value / most) * (height - 24);
        if (i === 0) c.moveTo(x(columns.times[i]), y); else c.lineTo(x(columns.times[i]), y);
      });
      c.stroke();
    });
    this.drawTitle(history, palette, most);
  }

  private drawFaults(history: History, x: (at: number) => number, height: number): void {
    for (const fault of history.faults) {
      this.context.fillStyle = fault.begins ? "rgba(255,60,60,0.6)" : "rgba(80,200,120,0.6)";
      this.context.fillRect(x(fault.at) - 0.75, 16, 1.5, height - 16);
    }
  }

  private drawTitle(history: History, palette: Palette, most: number): void {
    const c = this.context;
    c.font = "11px system-ui, sans-serif";
    c.fillStyle = palette.text;
    c.textBaseline = "top";
    c.textAlign = "left";
    c.fillText(this.chart.title, 4, 2);
    c.textAlign = "right";
    c.fillStyle = palette.faint;
    const width = this.canvas.clientWidth;
    if (this.pointer < 0) {
      c.fillText(`${plain(most)} ${this.chart.unit}`, width - 4, 2);
      return;
    }
    const at = this.timeAt(history, this.pointer);
    const frame = history.frames[history.indexAt(at)];
    if (frame === undefined) return;
    const values = this.chart.series.map((s) => `${s.name} ${plain(s.of(frame))}`);
    c.fillText(`${microseconds(frame.at)}: ${values.join(", ")}`, width - 4, 2);
  }

  // Of several frames in one column the highest.
  private columns(history: History, most: number): { times: number[]; values: number[][] } {
    const frames = history.frames;
    const step = Math.max(1, Math.ceil(frames.length / most));
    const times: number[] = [];
    const values: number[][] = this.chart.series.map(() => []);
    for (let i = 0; i < frames.length; i += step) {
      times.push(frames[i].at);
      this.chart.series.forEach((series, s) => {
        let top = 0;
        for (let j = i; j < Math.min(frames.length, i + step); ++j)
          top = Math.max(top, series.of(frames[j]));
        values[s].push(top);
      });
    }
    return { times, values };
  }
}

export function plain(value: number): string {
  if (value >= 1e6) return (value / 1e6).toFixed(1) + "M";
  if (value >= 1e4) return (value / 1e3).toFixed(1) + "k";
  return value === Math.round(value) ? String(value) : value.toFixed(2);
}
