// The form: the settings that most experiments differ in as fields, all others as text.

import { Setup, Transport, valueOf } from "./settings";

const kFields = ["topology", "planes", "hosts", "t0", "t1", "workload", "bytes", "seed"];

function field(name: string): HTMLInputElement | HTMLSelectElement {
  return document.getElementById(`set-${name}`) as HTMLInputElement | HTMLSelectElement;
}

export function writeForm(setup: Setup): void {
  for (const name of kFields) field(name).value = valueOf(setup, name);
  const others = setup.settings.filter(([name]) => !kFields.includes(name));
  field("others").value = others.map(([name, value]) => `${name}=${value}`).join("; ");
  field("transport").value = setup.sides.length > 1 ? "both" : setup.sides[0];
  const speed = document.getElementById("speed") as HTMLSelectElement;
  speed.value = String(setup.speedNs);
}

export function readForm(before: Setup): Setup {
  const settings: [string, string][] = [];
  for (const name of kFields) {
    const value = field(name).value.trim();
    if (value !== "") settings.push([name, value]);
  }
  for (const part of field("others").value.split(";")) {
    const [name, ...rest] = part.split("=");
    if (name.trim() !== "") settings.push([name.trim(), rest.join("=").trim()]);
  }
  const transport = field("transport").value;
  const sides: Transport[] =
    transport === "both" ? ["mrc", "rocev2"] : [transport as Transport];
  return { ...before, settings, sides };
}
