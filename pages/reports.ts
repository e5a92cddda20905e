// What the programs in a host say of themselves, as tables: devices, queue pairs, paths.

import { bytesText, microseconds, rateText } from "./layout";
import { DeviceReport, HostReport, PathCounts, QueuePairReport, SenderReport } from "./stream";

export type Cells = string[][];
export interface Table { title: string; rows: Cells }

// "60 good, 4 assumed bad"; states that no path has are left out.
export function pathsText(paths: PathCounts): string {
  const counts = Object.entries(paths).filter(([, paths]) => paths > 0);
  return counts.length === 0 ? "no paths" : counts.map(([state, n]) => `${n} ${state}`).join(", ");
}

const bits = (bytesPerSecond: number): string => rateText((bytesPerSecond * 8) / 1e9);
const hex = (number: number): string => "0x" + number.toString(16);

function deviceTable(device: DeviceReport): Table {
  const rows: Cells = [
    ["sends", bits(device.sends)],
    ["receives", bits(device.receives)],
    ["sent again", `${device.resends.toFixed(0)} packets/s`],
    ["queue pairs", String(device.queuePairs)],
    ...device.alarms.map((alarm) => ["alarm", alarm]),
  ];
  return { title: `${device.process} (pid ${device.pid}), ${device.device}`, rows };
}

// The table of EVs, summed up by plane: how many of each state, and which planes are silent.
function planeTable(device: DeviceReport): Table {
  return {
    title: "EVs by plane",
    rows: device.planes.map((plane) => [
      `plane ${plane.plane}`,
      pathsText(plane.paths) + (plane.up ? "" : ", port down")
      + (plane.silent > 0 ? `, ${plane.silent} silent` : "")
      + `; ${bits(plane.sends)} out, ${bits(plane.receives)} in`,
    ]),
  };
}

function queuePairRows(pair: QueuePairReport): Cells {
  return [
    [hex(pair.number), `to ${pair.peer}, ${pair.state}, ${bits(pair.rate)}`],
    ["", `round trip ${microseconds(pair.roundTripNs)}, window ${bytesText(pair.windowUsed)} of `
      + `${bytesText(pair.window)}, ${pair.inFlight} in flight`],
    ["", `${pair.resent} sent again, ${pair.timeouts} timeouts; ${pathsText(pair.paths)}`],
  ];
}

// In the order of the engine (core/event.h).
const EV_STATES = ["good", "skip", "assumed_bad", "denied"];

function senderTables(sender: SenderReport): Table[] {
  const which = sender.connection > 0 ? ` (${sender.connection})` : "";
  const counts = (paths: number[]): PathCounts =>
    Object.fromEntries(paths.map((number, state) => [EV_STATES[state], number]));
  const tables = [{
    title: `queue pair to host:${sender.peer}${which}`,
    rows: [
      ["round trip", `${microseconds(sender.roundTripNs)}, window ${bytesText(sender.window)}, `
        + `${bytesText(sender.inFlight)} in flight`],
      ["", `${sender.resent} sent again, ${sender.timeouts} timeouts`],
      ...sender.planes.map((paths, plane) => [`EVs of plane ${plane}`, pathsText(counts(paths))]),
    ],
  }];
  if (sender.badPaths.length > 0)
    tables.push({
      title: "EVs that are not good",
      rows: sender.badPaths.map(([plane, ev, state]) => [`plane ${plane}`, `${hex(ev)}: ${EV_STATES[state]}`]),
    });
  return tables;
}

export function tablesOf(report: HostReport): Table[] {
  const tables: Table[] = report.senders.flatMap(senderTables);
  for (const device of report.devices) {
    tables.push(deviceTable(device), planeTable(device));
    if (device.badPaths.length > 0)
      tables.push({
        title: "EVs that are not good",
        rows: device.badPaths.map((path) => [
          `${hex(path.queuePair)} plane ${path.plane}`,
          `${hex(path.entropy)}: ${path.state}, ${path.lost} lost, ${path.marked} marked`,
        ]),
      });
    const more = device.queuePairs - device.list.length;
    tables.push({
      title: `queue pairs${more > 0 ? `, the ${device.list.length} busiest` : ""}`,
      rows: device.list.flatMap(queuePairRows),
    });
  }
  return tables;
}
