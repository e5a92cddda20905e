// The set-up of an experiment: what stands in the address, what the form shows, what the command
// line says. Keys are those of `mrc sim` and of its TOML files; the module says what is wrong.

export type Transport = "mrc" | "rocev2";

export interface Setup {
  /** In the order of the address; `fail` may come several times. */
  settings: [string, string][];
  sides: Transport[];
  /** Simulated nanoseconds per second of the clock on the wall; 0: as fast as it goes. */
  speedNs: number;
  /** Step of the tour, from 1; 0: none. */
  tour: number;
}

export class AddressError extends Error {}

const kMaxAddress = 8192;
const kMaxSettings = 100;
const kSides: Record<string, Transport[]> = {
  mrc: ["mrc"],
  rocev2: ["rocev2"],
  both: ["mrc", "rocev2"],
};

export const kDefaults: readonly [string, string][] = [
  ["topology", "anchor-128"],
  ["hosts", "16"],
  ["t0", "4"],
  ["workload", "permutation"],
  ["bytes", "2MB"],
];

/** Reads what stands behind the # of an address. Throws AddressError. */
export function readAddress(text: string): Setup {
  const setup: Setup = { settings: [], sides: ["mrc"], speedNs: 20_000, tour: 0 };
  if (text.length > kMaxAddress) throw new AddressError("the address is too long");
  new URLSearchParams(text).forEach((value, name) => {
    if (name === "transport") {
      const sides = kSides[value];
      if (!sides) throw new AddressError(`transport '${value}': there are mrc, rocev2 and both`);
      setup.sides = sides;
    } else if (name === "speed") {
      setup.speedNs = readWhole(name, value, 1_000_000_000);
    } else if (name === "tour") {
      setup.tour = readWhole(name, value, 8);
    } else {
      addSetting(setup, name, value);
    }
  });
  if (setup.settings.length === 0) setup.settings = kDefaults.map(([n, v]) => [n, v]);
  return setup;
}

export function writeAddress(setup: Setup): string {
  const address = new URLSearchParams(setup.settings);
  address.append("transport", transportOf(setup));
  address.append("speed", String(setup.speedNs));
  if (setup.tour > 0) address.append("tour", String(setup.tour));
  return address.toString();
}

/** For the module: one to a line. */
export function settingLines(setup: Setup, side: Transport): string {
  const lines = setup.settings.map(([name, value]) => `${name}=${value}`);
  return [...lines, `transport=${side}`].join("\n");
}

/** What a person types to get the same on the command line. */
export function commandOf(setup: Setup): string {
  const words = ["mrc", "sim"];
  for (const [name, value] of setup.settings) {
    const flag = `--${name.replace(/_/g, "-")}`;
    if (value === "true") words.push(flag);
    else words.push(flag, quoted(value));
  }
  words.push("--transport", transportOf(setup));
  return words.join(" ");
}

export function valueOf(setup: Setup, name: string): string {
  return setup.settings.find(([key]) => key === name)?.[1] ?? "";
}

function transportOf(setup: Setup): string {
  return setup.sides.length > 1 ? "both" : setup.sides[0];
}

function addSetting(setup: Setup, name: string, value: string): void {
  if (!/^[a-z0-9_]{1,32}$/.test(name))
    throw new AddressError(`the address has a setting with an odd name: '${name.slice(0, 40)}'`);
  if (value === "" || /[\x00-\x1f\x7f]/.test(value))
    throw new AddressError(`the setting '${name}' of the address has no sensible value`);
  if (setup.settings.length >= kMaxSettings)
    throw new AddressError("the address has too many settings");
  if (value !== "false") setup.settings.push([name, value]);
}

function readWhole(name: string, value: string, most: number): number {
  const number = Number(value);
  if (!/^\d{1,12}$/.test(value) || number > most)
    throw new AddressError(`${name} '${value.slice(0, 40)}' is no whole number up to ${most}`);
  return number;
}

function quoted(value: string): string {
  return /^[\w.,:/=+-]+$/.test(value) ? value : `'${value.replace(/'/g, `'\\''`)}'`;
}
