// The colours of states and loads, for dark and light.

export interface Palette {
  background: string; node: string; nodeEdge: string; text: string; faint: string;
  chosen: string; grid: string;
  load: string[]; // from idle to full, in LOAD_STEPS + 1 steps
  state: string[]; // by number of state; healthy ones take the colour of their load
  series: string[];
  queue: string;
}

export const LOAD_STEPS = 10;

function mix(from: number[], to: number[], share: number): string {
  const part = (i: number): number => Math.round(from[i] + (to[i] - from[i]) * share);
  return `rgb(${part(0)},${part(1)},${part(2)})`;
}
function ramp(idle: number[], half: number[], full: number[]): string[] {
  return Array.from({ length: LOAD_STEPS + 1 }, (_, i) => {
    const share = i / LOAD_STEPS;
    return share < 0.5 ? mix(idle, half, share * 2) : mix(half, full, share * 2 - 1);
  });
}

const SERIES = ["#4e9fe5", "#e5894e", "#5fbf77", "#c77dd6", "#d6c04a", "#6fd0d0", "#e06c8b", "#9aa5b1"];

export const DARK: Palette = {
  background: "#12161c", node: "#2b3440", nodeEdge: "#596778", text: "#dde4ec", faint: "#8b98a8",
  chosen: "#ffffff", grid: "#2a323c",
  load: ramp([45, 54, 66], [62, 130, 190], [110, 215, 255]),
  state: ["", "#e0b341", "#e08a2e", "#b04ad9", "#e0668a", "#ff3b3b"],
  series: SERIES, queue: "#f0d060",
};
export const LIGHT: Palette = {
  background: "#f7f8fa", node: "#dfe5ec", nodeEdge: "#8494a6", text: "#1c2530", faint: "#5d6b7a",
  chosen: "#000000", grid: "#d5dce4",
  load: ramp([213, 220, 228], [110, 165, 215], [10, 85, 165]),
  state: ["", "#b98500", "#c96a00", "#8a1fb5", "#c23a66", "#d40000"],
  series: ["#1f6fb5", "#c05f1c", "#2f8a49", "#8f3fa3", "#97820f", "#1f8f8f", "#b5365a", "#5b6773"],
  queue: "#a07800",
};
