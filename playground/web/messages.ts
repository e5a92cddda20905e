// What a page and its workers say to each other. A worker has one run.

export type ToWorker =
  | { kind: "start"; module: WebAssembly.Module; settings: string }
  | { kind: "until"; ns: number } // run up to here, and no further
  | { kind: "hold"; id: number } // stand still until the next change
  | { kind: "break"; what: string; at: number; id: number } // at this time, not before
  | { kind: "heal"; fault: number; at: number; id: number }
  | { kind: "film"; moves: number };

export type FromWorker =
  | { kind: "lines"; lines: string[] }
  | { kind: "at"; ns: number; packetHops: number; runningS: number }
  | { kind: "held"; ns: number; id: number }
  | { kind: "plan"; faults: string[]; fault: number; id: number } // as it stands now
  | { kind: "refused"; why: string; id: number }
  | { kind: "result"; json: string }
  | { kind: "failed"; why: string };
