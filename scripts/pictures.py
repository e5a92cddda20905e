#!/usr/bin/env python3
"""Draws the pictures of README.md from runs of `mrc`: docs/pictures/cut.svg, docs/pictures/fabric.svg.

Usage: pictures.py MRC [FOLDER]. The same program draws the same pictures, byte by byte.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CUT_US = 100
CUT = ["sim", "--topology", "anchor-128", "--bytes", "16MB", "--compare", "mrc,rocev2",
       "--fail", f"t0:3/t1:5/plane:0 down @{CUT_US}us", "--until", "2ms", "--seed", "1"]
END_US = 800
FABRIC = ["--planes", "2", "--hosts", "8", "--t0", "2", "--t1", "4"]
FROM, TO = 1, 6
COLOURS = {"mrc": "#1f6fb4", "rocev2": "#c8502d"}
NAMES = {"mrc": "MRC", "rocev2": "RoCEv2"}
STYLE = """<style>
text { font-family: sans-serif; font-size: 13px; fill: #1b2430 }
.soft { fill: #55637a }
.mid { text-anchor: middle }
.right { text-anchor: end }
.grid { stroke: #d9dee6; stroke-width: 1 }
.line { fill: none; stroke-width: 2.2 }
.mark { stroke: #1b2430; stroke-width: 1; stroke-dasharray: 4 3 }
.cable { stroke: #c3cad5; stroke-width: 1.2 }
.used { stroke: #1f6fb4; stroke-width: 2.2 }
.box { fill: #eef1f5; stroke: #44546a }
.end { fill: #dfe8f6; stroke: #1f6fb4; stroke-width: 2 }
</style>"""


def run(mrc, *words):
    # Flows of RoCEv2 that do not end are exit status 4.
    done = subprocess.run([mrc, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4) or not done.stdout:
        sys.exit(f"mrc {' '.join(words)}: {done.stderr}")
    return done.stdout


def svg(width, height, label, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{label}">\n{STYLE}\n<rect width="{width}" height="{height}" '
            'fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def text(x, y, words, kind=""):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def goodput(mrc):
    """Points of each transport, and what became of its flows."""
    with tempfile.TemporaryDirectory() as folder:
        series = pathlib.Path(folder, "series.csv")
        runs = json.loads(run(mrc, *CUT, "--json", "--series", str(series)))["runs"]
        rows = list(csv.DictReader(series.read_text(encoding="ascii").splitlines()))
    points = {name: [(float(row["time_us"]), float(row["goodput_gbps"]) / 1e3) for row in rows
                     if row["transport"] == name and float(row["time_us"]) <= END_US]
              for name in NAMES}
    return points, {one["transport"]: one for one in runs}


def draw_cut(mrc):
    points, runs = goodput(mrc)
    left, top, width, height = 60, 56, 640, 250
    highest = 10 * -(-max(y for line in points.values() for _, y in line) // 10)

    def x_of(us):
        return left + width * us / END_US

    def y_of(tbps):
        return top + height * (1 - tbps / highest)

    parts = [text(left, 24, "128 hosts, every one sends 16 MB to another; one cable is cut and "
                            "stays cut"),
             text(left, 42, "goodput of all hosts, Tb/s", "soft")]
    for tbps in range(0, int(highest) + 1, 10):
        parts += [f'<line x1="{left}" y1="{y_of(tbps):g}" x2="{left + width}" y2="{y_of(tbps):g}" '
                  'class="grid"/>', text(left - 8, y_of(tbps) + 4, tbps, "soft right")]
    for us in range(0, END_US + 1, 100):
        parts.append(text(x_of(us), top + height + 20, us, "soft mid"))
    parts.append(text(left + width / 2, top + height + 40, "time, us", "soft mid"))
    parts += [f'<line x1="{x_of(CUT_US):g}" y1="{top}" x2="{x_of(CUT_US):g}" '
              f'y2="{top + height}" class="mark"/>', text(x_of(CUT_US) + 6, top + 14, "cut")]
    for name, line in points.items():
        path = " ".join(f"{x_of(us):.1f},{y_of(tbps):.1f}" for us, tbps in line)
        parts.append(f'<polyline points="{path}" class="line" stroke="{COLOURS[name]}"/>')
    for row, name in enumerate(NAMES):
        left_over = runs[name]["flows"] - runs[name]["completed"]
        told = (f"{left_over} of {runs[name]['flows']} flows not done after 2 ms" if left_over else
                f"all done after {runs[name]['finish_us']:.0f} us")
        y = top + 40 + 20 * row
        parts += [f'<line x1="{left + 360}" y1="{y - 4}" x2="{left + 384}" y2="{y - 4}" '
                  f'class="line" stroke="{COLOURS[name]}"/>',
                  text(left + 392, y, f"{NAMES[name]}: {told}")]
    return svg(740, 360, "Goodput of MRC and RoCEv2 when a cable is cut", parts)


def switches_of(mrc):
    summary = json.loads(run(mrc, "fabric", "show", *FABRIC, "--json"))
    return summary["hosts"], {tier["tier"]: tier["switches_per_plane"]
                              for tier in summary["tiers"]}, summary["planes"]


def draw_fabric(mrc):
    hosts, counts, planes = switches_of(mrc)
    paths = json.loads(run(mrc, "fabric", "path", *FABRIC, "--from", str(FROM), "--to", str(TO),
                           "--json"))["paths"]
    used = {(path["plane"], *sorted(pair)) for path in paths
            for pair in zip(path["route"].split(), path["route"].split()[1:])}
    plane_width, rows = 380, {"t1": 70, "t0": 170, "host": 290}
    width = plane_width * planes

    def place(plane, device):
        kind, number = device.split(":")
        if kind == "host":
            return width * (int(number) + 0.5) / hosts, rows[kind]
        return plane_width * (plane + (int(number) + 0.5) / counts[kind]), rows[kind]

    cables = [(plane, f"host:{host}", f"t0:{host * counts['t0'] // hosts}")
              for plane in range(planes) for host in range(hosts)]
    cables += [(plane, f"t0:{t0}", f"t1:{t1}") for plane in range(planes)
               for t0 in range(counts["t0"]) for t1 in range(counts["t1"])]
    parts = []
    for kind in ("cable", "used"):  # the used ones above the others
        for plane, lower, upper in cables:
            if ((plane, *sorted((lower, upper))) in used) == (kind == "used"):
                (x1, y1), (x2, y2) = place(plane, lower), place(plane, upper)
                parts.append(f'<line x1="{x1:g}" y1="{y1}" x2="{x2:g}" y2="{y2}" class="{kind}"/>')
    for plane in range(planes):
        parts.append(text(plane_width * (plane + 0.5), 28, f"plane {plane}", "mid"))
        for kind in ("t0", "t1"):
            for number in range(counts[kind]):
                x, y = place(plane, f"{kind}:{number}")
                parts += [f'<rect x="{x - 26:g}" y="{y - 14}" width="52" height="28" rx="6" '
                          'class="box"/>', text(x, y + 5, f"{kind}:{number}", "mid")]
    for host in range(hosts):
        x, y = place(0, f"host:{host}")
        parts += [f'<rect x="{x - 32:g}" y="{y - 14}" width="64" height="28" rx="6" '
                  f'class="{"end" if host in (FROM, TO) else "box"}"/>',
                  text(x, y + 5, f"host:{host}", "mid")]
    parts.append(text(width / 2, 334, f"the {len(paths)} paths from host {FROM} to host {TO}: each is an "
                                      "address that the sender writes", "soft mid"))
    return svg(width, 350, "A fabric of two planes and the paths between two hosts", parts)


def main():
    mrc = sys.argv[1]
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs" / "pictures"
    for name, draw in (("cut.svg", draw_cut), ("fabric.svg", draw_fabric)):
        (folder / name).write_text(draw(mrc), encoding="utf-8")
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
