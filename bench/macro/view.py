#!/usr/bin/env python3
"""How fast the page of `mrc view` and the playground are, and what they cost.

Usage: view.py MRC [--playground FOLDER] [--rounds N] [--json FILE] [--steps start,draw,...]

Each figure is the median of some rounds; cases that are compared take turns. Times on the wall
suffer from whatever else the machine does (its load is printed), processor times do so less.
FOLDER is what playground/build.sh made (build/playground).
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import browser  # noqa: E402  (found through the line above)
import labs  # noqa: E402
import pages  # noqa: E402
import programs  # noqa: E402

DRAWN = "window.mrcPage?.history?.frames.length > 0 && window.mrcPage.view.drawn > 0"
ENDED = "window.mrcPage?.history?.ended === true && window.mrcPage.view.drawn > 0"
# Each with what is drawn in it: fabric, charts, details.
FABRICS = {
    "128 hosts": ("--topology", "anchor-128", "--bytes", "1MB"),
    "1,024 hosts, folded": ("--topology", "anchor-128", "--hosts", "1024", "--t0", "64", "--t1",
                            "16", "--planes", "4", "--bytes", "100kB"),
}
DRAWINGS = 180
DRAW = f"""new Promise((done) => {{
  const {{ history }} = mrcPage;
  const began = performance.now();
  let drawn = 0;
  let busy = 0;
  const step = () => {{
    const at = performance.now();
    mrcPage.seek(history.frames[drawn % history.frames.length].at);
    mrcPage.draw(history, mrcPage.view);
    busy += performance.now() - at;
    if (++drawn < {DRAWINGS}) requestAnimationFrame(step);
    else done([drawn / ((performance.now() - began) / 1000), busy / drawn]);
  }};
  requestAnimationFrame(step);
}})"""
SIMULATION = {"planes": 4, "hosts": 64, "t0": 8, "t1": 8, "workload": "permutation",
              "bytes": "40MB", "seed": 3}
FRAMES = 40
FRAME_S = 0.25
VIEWERS = 10
JOB_BYTES = "64K"  # small, so that rounds are many and their number tells


class Bench:
    """What pages.View wants of a test, and what is cleaned up at the end."""

    def __init__(self, mrc, folder, rounds):
        self.mrc = mrc
        self.folder = folder
        self.rounds = rounds
        self.processes = []

    def start(self, *words):
        self.processes.append(programs.start([self.mrc, *words]))
        return self.processes[-1]

    def fail(self, what):
        raise programs.Failed(what)

    def tool(self, *words):
        done = programs.run([self.mrc, *words])
        if done.returncode != 0:
            raise programs.Failed(f"{words}: {done.stderr}")
        return done.stdout

    def record(self, name, words):
        file = f"{self.folder}/{name.split()[0].replace(',', '')}.mrcview"
        if not os.path.exists(file):
            self.tool("sim", *words, "--record", file)
        return file

    def median(self, measure):
        """Of each value of what `measure` returns."""
        rounds = [measure() for _ in range(self.rounds)]
        return {name: statistics.median(values[name] for values in rounds) for name in rounds[0]}

    def close(self):
        for process in self.processes:
            programs.end(process)


def processor_s(process):
    return int(pathlib.Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9


def start_up(bench, driver):
    """From the start of the command until its page answers, and until the first picture."""
    file = bench.record("128 hosts", FABRICS["128 hosts"])

    def measure():
        began = time.monotonic()
        view = pages.View(bench, file)
        stream = pages.Stream(view.url)
        stream.line()
        up = time.monotonic() - began
        stream.close()
        page = driver.page(view.url)
        page.wait(DRAWN, "no picture")
        drawn = time.monotonic() - began
        server = processor_s(view.process)
        page.close()
        view.stop()
        return {"page_up_s": up, "first_picture_s": drawn, "server_processor_s": server}

    return bench.median(measure)


def draw(bench, driver):
    """How many pictures a second, of at most 60, how long the page works on one, and what one
    costs all processes of the browser."""
    results = {}
    for name, words in FABRICS.items():
        view = pages.View(bench, bench.record(name, words))
        page = driver.page(view.url)
        page.wait(ENDED, "the recording is not shown")

        def measure():
            before = driver.processor_s()
            per_second, work_ms = page.value(DRAW)
            spent_ms = 1000 * (driver.processor_s() - before)
            return {"frames_per_s": per_second, "work_ms": work_ms,
                    "browser_processor_ms": spent_ms / DRAWINGS}

        results[name] = bench.median(measure)
        page.close()
        view.stop()
    return results


def sizes(bench, playground):
    """Bytes of the files that a browser loads."""
    view = pages.View(bench, bench.record("128 hosts", FABRICS["128 hosts"]))
    parts = urllib.parse.urlsplit(view.url)
    total = 0
    for name in ("", "page.js", "page.css", "loader.js", "start.js"):
        done = subprocess.run(["curl", "-sf", f"{parts.scheme}://{parts.netloc}{parts.path}{name}"],
                              capture_output=True, check=True, timeout=programs.WAIT_S)
        total += len(done.stdout)
    view.stop()
    result = {"page_bytes": total}
    site = playground / "site" if playground else None
    if site and site.exists():
        result["playground_bytes"] = sum(file.stat().st_size for file in site.iterdir())
    return result


def viewers(bench):
    """What ten viewers cost the server, and the lab's job."""
    lab = labs.Lab(bench.mrc, f"{bench.folder}/lab")
    lab.do("up", "--hosts", "8", "--planes", "4")
    try:
        view = pages.View(bench, "--lab", "lab", "--dir", lab.folder)

        def cost(count):
            streams = [pages.Stream(view.url) for _ in range(count)]
            newest = streams[0].frame()["t"]
            for stream in streams[1:]:
                while stream.frame()["t"] < newest:
                    pass
            before, heard = processor_s(view.process), sum(stream.bytes for stream in streams)
            for _ in range(FRAMES):
                for stream in streams:
                    stream.frame()
            spent = processor_s(view.process) - before
            heard = sum(stream.bytes for stream in streams) - heard
            for stream in streams:
                stream.close()
            return spent / (FRAMES * FRAME_S), heard / count / (FRAMES * FRAME_S)

        def job(watched):
            run = bench.start("perf", "allreduce", "--lab", "lab", "--lab-dir", lab.folder, "-b",
                              JOB_BYTES, "-e", JOB_BYTES, "-w", "1", "-D", "8", "--json")
            streams = [pages.Stream(view.url) for _ in range(VIEWERS if watched else 0)]
            while run.poll() is None:
                for stream in streams:
                    stream.frame()
                time.sleep(0.05)
            for stream in streams:
                stream.close()
            row = json.loads(run.communicate()[0])["results"][0]
            return row["rounds"]

        def measure():
            run = bench.start("perf", "allreduce", "--lab", "lab", "--lab-dir", lab.folder, "-b",
                              "1M", "-e", "1M", "-w", "0", "-D", "3600", "--json")
            one, _ = cost(1)
            ten, bytes_per_s = cost(VIEWERS)
            programs.end(run)
            alone, watched = job(False), job(True)
            return {"server_share_with_1": one, "server_share_with_10": ten,
                    "share_per_viewer": (ten - one) / (VIEWERS - 1),
                    "bytes_per_s_per_viewer": bytes_per_s,
                    "rounds_alone": alone, "rounds_watched": watched,
                    "rounds_watched_of_alone": watched / alone}

        return bench.median(measure)
    finally:
        bench.close()
        lab.close()


def timed(words, text=None):
    """Output of a program, and the processor time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True,
                          timeout=programs.WAIT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def simulation(bench, playground):
    """The same run in WebAssembly and natively, in turns: packet-hops per processor second."""
    module = ["node", str(ROOT / "playground/tests/run_module.mjs"),
              str(playground / "wasm/mrc_playground.wasm"), str(playground / "wasm/node/module.js")]
    lines = "".join(f"{name}={value}\n" for name, value in SIMULATION.items())
    flags = [word for name, value in SIMULATION.items() for word in (f"--{name}", str(value))]

    def measure():
        native, native_s = timed([bench.mrc, "sim", "--json", *flags])
        page, page_s = timed(module, lines)
        native, page = json.loads(native), json.loads(page)
        if native["trace_hash"] != page["trace_hash"]:
            raise programs.Failed("the two runs differ")
        hops = native["packet_hops"]
        return {"packet_hops": hops, "native_hops_per_processor_s": hops / native_s,
                "page_hops_per_processor_s": hops / page_s, "share": native_s / page_s}

    return bench.median(measure)


def show(name, values, indent=0):
    if isinstance(values, dict):
        print(f"{'  ' * indent}{name}")
        for key, value in values.items():
            show(key, value, indent + 1)
    else:
        text = f"{values:,.4g}" if isinstance(values, float) and values < 1e4 else f"{values:,.0f}"
        print(f"{'  ' * indent}{name:32} {text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mrc")
    parser.add_argument("--playground", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--steps", default="start,draw,sizes,viewers,simulation")
    options = parser.parse_args()
    steps = options.steps.split(",")
    report = {"load": os.getloadavg()[0], "processors": os.cpu_count(), "rounds": options.rounds}
    with programs.own_folder() as folder:
        bench = Bench(os.path.abspath(options.mrc), folder, options.rounds)
        driver = None
        try:
            if {"start", "draw"} & set(steps) and browser.find():
                driver = browser.Browser(f"{folder}/profile")
            if driver and "start" in steps:
                report["start"] = start_up(bench, driver)
            if driver and "draw" in steps:
                report["draw"] = draw(bench, driver)
            if "sizes" in steps:
                report["sizes"] = sizes(bench, options.playground)
            if "viewers" in steps:
                report["viewers"] = viewers(bench)
            if "simulation" in steps and options.playground:
                report["simulation"] = simulation(bench, options.playground)
        finally:
            bench.close()
            if driver:
                driver.close()
    report["load_after"] = os.getloadavg()[0]
    show("view", report)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2), encoding="utf-8")


if __name__ == "__main__":
    programs.leave_cleanly_when_told()
    main()
