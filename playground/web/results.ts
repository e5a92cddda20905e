// Results as a table, one column per side; the names are those of `mrc sim --json`.

import { Transport } from "./settings";

type Json = { [key: string]: Json | number | string | boolean | null };

const kRows = [
  "finished", "finish_us", "fct_us.p50", "fct_us.p99", "fct_us.max", "ratio_max", "bound_us",
  "ratio_bound", "goodput_gbps", "bus_gbps", "victim.fct_us", "victim.ratio", "failed",
  "data_packets", "retransmits", "timeouts", "probes", "trims", "marks", "pauses", "drops",
  "recovery_us", "packet_hops", "packet_hops_per_s", "trace_hash",
];

function valueAt(json: Json, name: string): string {
  let value: Json[string] | undefined = json;
  for (const part of name.split("."))
    value = typeof value === "object" && value !== null ? value[part] : undefined;
  return value === undefined || value === null ? "" : String(value);
}

export function resultTable(sides: Transport[], results: string[]): HTMLTableElement {
  const parsed = sides.map((_, i) => (results[i] ? (JSON.parse(results[i]) as Json) : {}));
  const table = document.createElement("table");
  const add = (cells: string[], tag: "th" | "td"): void => {
    const row = table.insertRow();
    for (const text of cells) {
      const cell = document.createElement(tag);
      cell.textContent = text;
      row.append(cell);
    }
  };
  add(["", ...sides], "th");
  for (const name of kRows) {
    const values = parsed.map((json) => valueAt(json, name));
    if (values.some((value) => value !== "")) add([name, ...values], "td");
  }
  return table;
}
