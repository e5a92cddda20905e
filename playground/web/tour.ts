// Eight experiments that show what the protocol does, in the order in which it makes sense to see
// them. What they say is told at length in docs/protocol.md and docs/congestion.md.

import { Setup, Transport } from "./settings";

export interface Step {
  title: string;
  text: string;
  attempt: string; // one thing to try
  settings: [string, string][];
  sides: Transport[];
  speedNs: number;
}

const kSmall: [string, string][] = [
  ["planes", "4"],
  ["hosts", "16"],
  ["t0", "4"],
  ["t1", "4"],
];

export const kSteps: Step[] = [
  {
    title: "Spraying",
    text:
      "One host sends one message. Its packets do not follow each other on one path: each takes " +
      "the next of many, through every plane and every T1 switch. The packet says itself where it " +
      "goes, so switches need no luck with a hash. The receiver puts each packet to its place in " +
      "memory whenever it comes; the order on the way does not matter.",
    attempt: "Set the transport to RoCEv2: the same message now uses one path of one plane.",
    settings: [...kSmall, ["workload", "pair"], ["bytes", "500kB"], ["destination", "15"]],
    sides: ["mrc"],
    speedNs: 2_000,
  },
  {
    title: "Trimming",
    text:
      "Seven hosts send to one, and the queue of its last link is full. A switch that has no room " +
      "cuts the payload off and sends the headers on, ahead of everything else. The receiver sees " +
      "what is missing after one way and asks for it with a NACK; nobody waits for a timer.",
    attempt: "Set senders=14 in \"more\" and compare `trims`: each of them has been asked for again.",
    settings: [...kSmall, ["workload", "incast"], ["senders", "7"], ["bytes", "500kB"]],
    sides: ["mrc"],
    speedNs: 5_000,
  },
  {
    title: "Selective acknowledgements",
    text:
      "One packet in five hundred is lost on its way. The receiver tells in a SACK which packets " +
      "it has, as a map of bits. Packets of one path stay in order, and the sender knows which path " +
      "each one took: what is missing while a later one of its path has arrived is lost, and only " +
      "that packet goes again.",
    attempt: "Choose both transports: RoCEv2 goes back to the lost packet and sends all that followed.",
    settings: [...kSmall, ["workload", "permutation"], ["bytes", "1MB"], ["loss", "0.002"]],
    sides: ["mrc"],
    speedNs: 5_000,
  },
  {
    title: "A dead cable",
    text:
      "After 10 us a cable between a T0 and a T1 switch dies. Switches have static routes and do " +
      "nothing. The senders miss answers from the paths over that cable, take these paths out of " +
      "use, and send what was lost on others. The fan closes around the hole.",
    attempt: "Click another cable in the drawing below and cut it while the run goes on.",
    settings: [
      ...kSmall,
      ["workload", "permutation"],
      ["bytes", "8MB"], // half of it goes out after the cut: the closed fan is to be seen
      ["fail", "t0:0/t1:1/plane:0 down @10us"],
    ],
    sides: ["mrc"],
    speedNs: 5_000,
  },
  {
    title: "Probes, and the way back",
    text:
      "The cable dies after 10 us and is back 20 us later. Nobody tells the hosts. They send a " +
      "probe, a small packet that carries no data, over each path they have given up, again and " +
      "again at growing distances. When two in a row are answered, the path is used again.",
    attempt: "Add the setting no_probes=true and count the probes: there are none, and the result says so.",
    settings: [
      ...kSmall,
      ["workload", "permutation"],
      ["bytes", "8MB"],
      ["fail", "t0:0/t1:1/plane:0 down @10us for 20us"],
    ],
    sides: ["mrc"],
    speedNs: 10_000,
  },
  {
    title: "A lost plane",
    text:
      "A plane is a network of its own, and each host has one port in each. Here every switch of " +
      "plane 0 that joins racks fails after 10 us. A quarter of the bandwidth between racks is gone. " +
      "What was under way there is found missing and sent again over the three planes left.",
    attempt: "Choose RoCEv2: connections stay on their plane, and two of the sixteen fail.",
    settings: [
      ...kSmall,
      ["workload", "permutation"],
      ["bytes", "8MB"],
      ["fail", "t1:*/plane:0 down @10us"],
    ],
    sides: ["mrc"],
    speedNs: 5_000,
  },
  {
    title: "Incast with a victim",
    text:
      "Twelve hosts send to one, and a neighbour of that one in the same rack receives a flow of " +
      "its own: the victim. There is one plane, so that both transports have the same way. With RoCEv2 a switch that fills up stops the links that feed it, " +
      "whoever's packets they carry (`pauses`). With MRC nothing is stopped: packets are trimmed, " +
      "and each sender slows down by what its own packets met.",
    attempt:
      "Compare `victim.ratio`: how many times longer the victim took than it would alone. What the " +
      "twelve take (`finish_us`) is set by the last link either way. With four planes a RoCEv2 " +
      "flow may be lucky and have one to itself; try planes 4.",
    settings: [
      ["planes", "1"],
      ["hosts", "16"],
      ["t0", "4"],
      ["t1", "4"],
      ["workload", "incast"],
      ["senders", "12"],
      ["victim", "true"],
      ["bytes", "1MB"],
    ],
    sides: ["mrc", "rocev2"],
    speedNs: 10_000,
  },
  {
    title: "All-to-all",
    text:
      "Every host sends to every other, as experts in a model do. With one path per connection some " +
      "links carry two flows and others none, and all wait for the slowest. Sprayed, every link " +
      "carries the same, and the whole is done when the bandwidth allows.",
    attempt: "Compare `finish_us`, and `ratio_bound`: how many times longer it took than what this " +
      "transport could at best, with its own headers and paths (`bound_us`).",
    settings: [...kSmall, ["workload", "all-to-all"], ["bytes", "1MB"]],
    sides: ["mrc", "rocev2"],
    speedNs: 10_000,
  },
];

export function setupOf(number: number): Setup {
  const step = kSteps[number - 1];
  return { settings: step.settings, sides: step.sides, speedNs: step.speedNs, tour: number };
}
