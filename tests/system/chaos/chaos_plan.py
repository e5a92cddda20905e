"""What goes wrong in a chaos run, and when: decided by one number before anything starts.

A plan never takes the last way between two hosts: programs whose peer lives must not notice.
"""

import dataclasses
import random

GAP_S = (1.0, 5.0)  # between two faults
FAULT_S = (0.3, 6.0)  # how long one lasts
STOP_S = (0.1, 1.5)  # how long a program is stopped
TRIES = 50  # for a fault that leaves a way


@dataclasses.dataclass(frozen=True)
class Fabric:
    hosts: int = 4
    planes: int = 2
    t0: int = 2
    t1: int = 4

    def t0_of(self, host):
        return host // (self.hosts // self.t0)

    def pairs(self):
        return [(a, b) for a in range(self.hosts) for b in range(a + 1, self.hosts)]


@dataclasses.dataclass(frozen=True)
class Event:
    at_s: float
    kind: str
    lasts_s: float = 0.0
    text: str = ""  # a fault in the words of `mrc lab fault`, without its duration
    broken: frozenset = frozenset()  # what carries nothing, or not all the time
    victim: tuple = ()  # (pair, side) of a program

    def overlaps(self, other):
        return (self.at_s < other.at_s + other.lasts_s) and (other.at_s < self.at_s + self.lasts_s)

    def __str__(self):
        if self.victim:
            what = f"{self.kind} program {self.victim[1]} of pair {self.victim[0]}"
        else:
            what = self.text
        return what + (f" for {self.lasts_s:.1f} s" if self.lasts_s else "")


def ways(fabric, pair, broken):
    """How many paths between two hosts cross nothing that is broken."""
    count = 0
    ends = [fabric.t0_of(host) for host in pair]
    for plane in range(fabric.planes):
        if any(("port", plane, host) in broken for host in pair):
            continue
        if any(("t0", plane, t0) in broken for t0 in ends):
            continue
        if ends[0] == ends[1]:
            count += 1
            continue
        for t1 in range(fabric.t1):
            cables = [("cable", plane, t0, t1) for t0 in ends]
            if ("t1", plane, t1) not in broken and not broken.intersection(cables):
                count += 1
    return count


def leaves_ways(fabric, broken, least):
    def enough(pair):
        found = ways(fabric, pair, broken)
        return found >= min(least, ways(fabric, pair, frozenset()))

    return all(enough(pair) for pair in fabric.pairs())


def draw_link_fault(rng, fabric):
    """(kind, text, what is broken by it)."""
    plane = rng.randrange(fabric.planes)
    t0, t1 = rng.randrange(fabric.t0), rng.randrange(fabric.t1)
    host = rng.randrange(fabric.hosts)
    cable, where = f"t0:{t0}/t1:{t1}/plane:{plane}", f"/plane:{plane}"
    is_cable = frozenset({("cable", plane, t0, t1)})
    port = frozenset({("port", plane, host)})
    milliseconds = rng.randrange(20, 200)
    one_way = rng.choice((f"t0:{t0}>t1:{t1}", f"t1:{t1}>t0:{t0}"))
    return rng.choice((
        ("cut", f"{cable} down", is_cable),
        ("cut one way", f"{one_way}{where} down", is_cable),
        ("port", f"host:{host}{where} down", port),
        ("reboot t1", f"t1:{t1}{where} down", frozenset({("t1", plane, t1)})),
        ("reboot t0", f"t0:{t0}{where} down", frozenset({("t0", plane, t0)})),
        ("plane", f"t1:*{where} down",
         frozenset(("t1", plane, number) for number in range(fabric.t1))),
        ("flap", f"{cable} flap {milliseconds}ms/{2 * milliseconds}ms", is_cable),
        ("flap port", f"host:{host}{where} flap {milliseconds}ms/{3 * milliseconds}ms", port),
        ("black hole", f"t0:{t0}{where} blackhole t1:{t1}", is_cable),
        ("slow", f"{cable} rate {rng.choice((10, 25, 50))}%", frozenset()),
        ("loss", f"{cable} loss {rng.choice((1, 5, 20))}%", frozenset()),
        ("loss at a port", f"host:{host}{where} loss {rng.choice((1, 2))}%", frozenset()),
        ("damage", f"{cable} corrupt {rng.choice((1, 5))}%", frozenset()),
    ))


def draw(rng, fabric, at_s):
    if rng.random() < 0.3:
        victim = (rng.randrange(len(fabric.pairs())), rng.choice(("server", "client")))
        kind = rng.choice(("kill", "kill the runner of", "stop", "stop"))
        lasts_s = rng.uniform(*STOP_S) if kind == "stop" else 0.0
        return Event(at_s, kind, lasts_s, victim=victim)
    kind, text, broken = draw_link_fault(rng, fabric)
    return Event(at_s, kind, rng.uniform(*FAULT_S), text=text, broken=broken)


def make_plan(seed, seconds, fabric, least_ways):
    rng = random.Random(seed)
    plan = []
    at_s = rng.uniform(0.5, 1.5)
    while at_s < seconds:
        for _ in range(TRIES):
            event = draw(rng, fabric, at_s)
            together = event.broken.union(*(e.broken for e in plan if e.overlaps(event)))
            if leaves_ways(fabric, together, least_ways):
                plan.append(event)
                break
        at_s += rng.uniform(*GAP_S)
    return plan
