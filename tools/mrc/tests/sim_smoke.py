#!/usr/bin/env python3
"""Runs `mrc sim` as a user would and checks what it says and writes.

Usage: sim_smoke.py <mrc>. Prints one line for each thing that is wrong; exit status 1 if there is
any. Captures are read with tshark where there is one.
"""

import csv
import html.parser
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

SMALL = "--hosts 16 --t0 4 --t1 4 --planes 2 --gbps 200 --bytes 200kB"
FAULT = "--fail 't0:1/t1:2/plane:0 down @5us'"
KEYS = {
    "schema", "transport", "seed", "flows", "completed", "fct_us", "ideal_us", "ratio_max",
    "goodput_gbps", "retransmits", "trims", "drops", "timeouts", "bytes_wrong", "events",
    "packet_hops", "wall_s", "packet_hops_per_s", "peak_rss_bytes", "trace_hash", "setup_s",
    "bound_us", "ratio_bound", "marks", "probes", "spurious", "hedged",
}
FCT_KEYS = {"mean", "p50", "p99", "max"}
COSTS = {"wall_s", "setup_s", "packet_hops_per_s", "peak_rss_bytes"}
# Each in a folder that holds the files of BAD_FILES; none may write anything.
USAGE_ERRORS = [
    "--bogus",
    "--hosts many",
    "--hosts 17 --t0 4",
    "--hosts 16 --hosts 32",
    "--hosts 2000000 --t0 2000 --t1 10",
    "--planes 17",
    "--gbps 0",
    "--topology nowhere",
    "--topology nowhere.toml",
    "--workload dance",
    "--workload incast --senders 100",
    "--bytes 0",
    "--bytes lots",
    "--seed -1",
    "--seeds 4-2",
    "--seeds 1,x",
    "--seeds 1-99999",
    "--seeds 1-2 --csv out.csv",
    "--workload parking-lot",
    "--workload fairness --senders 1",
    "--workload poisson --load 0",
    "--workload poisson --sizes absent",
    "--dcqcn best",
    "--split-paths 0",
    "--transport tcp",
    "--compare mrc",
    "--loss 1",
    "--loss -0.1",
    "--mtu 4097",
    "--cc bbr",
    "--forwarding pigeon",
    "--until 0",
    "--until soon",
    "--timeout 25",
    "--nscc bogus=1",
    "--nscc eta",
    "--roce gain=x",
    "--queue ecn_min=-1",
    "--fail 'moon down @0'",
    "--fail 't0:9/t1:0/plane:0 down @0'",
    "--fail-file absent.txt",
    "--fail-file faults.txt",
    "--flows absent.csv",
    "--flows flows.csv",
    "--config absent.toml",
    "--config unknown_key.toml",
    "--config bad_value.toml",
    "--config broken.toml",
    "--explain 0",
    "--explain some",
    "--pcap out.pcapng",
    "--pcap-link 't0:0>t1:0/plane:0'",
    "--pcap out.pcapng --pcap-link 't0:9>t1:0/plane:0'",
    "--pcap out.pcapng --pcap-link 't0:0>t1:0/plane:0' --transport both",
    "--verify --bytes 60GiB --hosts 128 --t0 8",
    # Outputs named beside something wrong are not begun.
    "--csv out.csv --report out.html --series series.csv --fail 'moon down @0'",
]
# Outputs that cannot be written are a failure, known before the run.
UNWRITABLE = {"--csv absent/out.csv": "absent/out.csv: cannot be written: No such file",
              "--report .": ".: cannot be written: Is a directory",
              "--csv /dev/null/out.csv": "cannot be written: Not a directory"}
# Runs that make each of these flags matter.
INCAST = f"{SMALL} --workload incast --senders 12"
SWITCHES = {
    SMALL: ("--one-plane", "--ecmp", "--structured", "--mtu 2048", "--evs 4", "--qps 3",
            "--sack-each-packet", "--placement shuffled", "--uplink-gbps 100", "--delay-us 2"),
    INCAST: ("--no-trim", "--hints", "--cc none", "--nscc target_delay_ns=1000",
             "--queue ecn_min=0.01"),
    f"{SMALL} --loss 0.05": ("--timeout 3", "--no-probes"),
    SMALL.replace("200kB", "2MB") + " --fail 't1:0/plane:0 rate 10% @0'": ("--oblivious",),
    "--topology tiny --workload pair --bytes 2MB --delay-us 20": ("--mpr 1",),
    "--topology tiny --workload pair --bytes 2MB --fail 'host:0/plane:0 down @20us'":
        ("--carrier-detect-us 50",),
    SMALL.replace("200kB", "2MB") + " --workload incast --senders 12 --transport rocev2":
        ("--no-pfc --until 1s", "--cc none", "--roce ack_every=4", "--roce gain=0.1", "--qps 2",
         "--dcqcn nic --until 1s", "--dcqcn paper --until 1s"),
    f"{SMALL} --transport split": ("--split-paths 2", "--qps 2"),
    f"{SMALL} --workload parking-lot --crossing 3 --uplink-gbps 100":
        ("--through-bytes 400kB",),
    f"{SMALL} --workload fairness --senders 4 --uplink-gbps 100": ("--stagger-us 3",),
    f"{SMALL} --workload poisson": ("--load 0.1", "--arrivals-us 30"),
    "--bytes 50kB --topology fat-tree-1024 --workload pair": ("--gbps 100",),
}
BAD_FILES = {
    "faults.txt": "# comment\n\nt0:0/t1:0/plane:0 explodes @0\n",
    "flows.csv": "0,1,1000\n0,99,1000\n",
    "unknown_key.toml": 'workload = "pair"\ncolour = "red"\n',
    "bad_value.toml": 'hosts = "many"\n',
    "broken.toml": "hosts = = 3\n",
}
# Errors in files name the file and the line.
PLACES = {
    "--fail-file faults.txt": "faults.txt:3",
    "--flows flows.csv": "flows.csv:2",
    "--config unknown_key.toml": "unknown_key.toml:2",
    "--config bad_value.toml": "bad_value.toml:1",
    "--config broken.toml": "broken.toml:1",
}

problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


class Tool:
    """`mrc sim` in a folder of its own."""

    def __init__(self, program, folder):
        self.program = os.path.abspath(program)
        self.folder = pathlib.Path(folder)

    def run(self, arguments):
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        return programs.run([self.program, "sim", *shlex.split(arguments)], cwd=self.folder,
                            env=environment, timeout=None)

    def json(self, arguments, status=0):
        result = self.run(f"{arguments} --json")
        expect(result.returncode == status,
               f"{arguments}: exit status {result.returncode}, not {status}: {result.stderr}")
        try:
            return json.loads(result.stdout)
        except ValueError as error:
            problems.append(f"{arguments}: no JSON: {error}")
            return {}


def check_usage(tool):
    for name, text in BAD_FILES.items():
        (tool.folder / name).write_text(text, encoding="utf-8")
    before = sorted(tool.folder.iterdir())
    for arguments in USAGE_ERRORS:
        result = tool.run(arguments)
        expect(result.returncode == 2, f"{arguments}: exit status {result.returncode}, not 2")
        expect(result.stdout == "", f"{arguments}: wrote to stdout")
        expect(len(result.stderr.splitlines()) == 1, f"{arguments}: {result.stderr!r}")
        place = PLACES.get(arguments, "")
        expect(place in result.stderr, f"{arguments}: {result.stderr!r} does not say {place}")
    for arguments, reason in UNWRITABLE.items():
        result = tool.run(arguments)
        expect(result.returncode == 1, f"{arguments}: exit status {result.returncode}, not 1")
        expect(result.stderr.startswith("mrc sim: ") and reason in result.stderr and
               len(result.stderr.splitlines()) == 1, f"{arguments}: {result.stderr!r}")
    expect(sorted(tool.folder.iterdir()) == before, "a refused run wrote a file")


def check_json(tool):
    report = tool.json(f"{SMALL} --seed 13")
    expect(not KEYS - report.keys(), f"JSON lacks {sorted(KEYS - report.keys())}")
    expect(report["schema"] == "mrc.sim/1", f"schema {report['schema']}")
    expect(report["transport"] == "mrc" and report["seed"] == 13, "transport or seed is wrong")
    expect(report["fct_us"].keys() == FCT_KEYS, f"fct_us has {sorted(report['fct_us'])}")
    expect(report["flows"] == report["completed"] == 16, f"{report['completed']} flows completed")
    expect(report["bytes_wrong"] == 0, "bytes are wrong")
    expect("recovery_us" not in report and "dip" not in report, "a fault that nobody asked for")
    int(report["trace_hash"], 16)
    expect(report["ratio_max"] >= 0.9, f"ratio {report['ratio_max']}")


def check_faults(tool):
    report = tool.json(f"{SMALL} --bytes 1MB {FAULT}".replace("--bytes 200kB ", ""))
    expect(report["recovery_us"] >= 0, "recovery_us is missing")
    expect(report["faults"] == ["t0:1/t1:2/plane:0 down @5us"], f"faults {report['faults']}")
    report = tool.json("--topology tiny --workload pair --bytes 4MB "
                       "--fail 'host:0/plane:1 down @20us for 50us'")
    expect({"depth", "length_us"} <= (report["dip"] or {}).keys(), f"dip {report['dip']}")
    report = tool.json(f"{SMALL} --fail 't1:0/plane:0 rate 50% @0'")
    expect(report["recovery_us"] is None and report["dip"] is None, "a slow link is not down")
    report = tool.json(f"{SMALL} --loss 0.01")
    expect(report["drops"] > 0 and report["retransmits"] > 0, "no packet was lost")


def check_victim_and_steps(tool):
    report = tool.json(f"{SMALL} --workload incast --senders 7 --victim")
    expect({"fct_us", "alone_us", "ratio"} <= report["victim"].keys(), f"{report['victim']}")
    expect(report["ratio_bound"] >= 0.99, f"faster than the bound: {report['ratio_bound']}")
    report = tool.json(f"{SMALL} --workload training --steps 3 --compute-us 20")
    expect(len(report["steps_us"]) == 3, f"steps {report['steps_us']}")
    expect(report["step_us"].keys() == FCT_KEYS, f"step_us {report['step_us']}")


def check_seeds(tool):
    many = tool.json(f"{SMALL} --seeds 3,7-8 --compare mrc,rocev2,split")
    expect(many["schema"] == "mrc.sim.seeds/1" and many["seeds"] == [3, 7, 8], f"{many['seeds']}")
    expect([t["transport"] for t in many["transports"]] == ["mrc", "rocev2", "split"],
           "not all transports")
    for each in many["transports"]:
        hashes = [run["trace_hash"] for run in each["runs"]]
        expect(len(set(hashes)) == 3, f"{each['transport']}: seeds give one run")
        finish = each["statistics"]["finish_us"]
        values = [run["finish_us"] for run in each["runs"]]
        expect(abs(finish["mean"] - sum(values) / 3) < 1e-3, f"mean of {values} is {finish}")
        expect(finish["worst"] == max(values) and finish["seeds"] == 3, f"worst of {values}")
        expect(finish["ci95_low"] < finish["mean"] < finish["ci95_high"], f"interval {finish}")
    one = tool.json(f"{SMALL} --seed 7")
    expect(many["transports"][0]["runs"][1]["trace_hash"] == one["trace_hash"],
           "a seed among others is another run")
    text = tool.run(f"{SMALL} --seeds 1-3").stdout
    for word in ("mean", "95 % interval", "worst", "ratio_bound", "3 of 3 runs finished"):
        expect(word in text, f"seeds: no {word!r}")


def check_shares(tool):
    report = tool.json("--hosts 16 --t0 4 --t1 1 --planes 1 --gbps 400 --bytes 4MB "
                       "--workload fairness --senders 2")
    fairness = report["fairness"]
    expect(len(fairness["share"]) == 2 and len(fairness["shares_over_time"]) == 10, f"{fairness}")
    expect(0.5 <= fairness["jain"] <= 1 and fairness["jain_worst"] <= fairness["jain"] + 1e-9,
           f"{fairness}")
    expect(report["ratio_bound"] >= 0.999, f"faster than the bound: {report['ratio_bound']}")
    load = tool.json(f"{SMALL} --workload poisson --sizes websearch --arrivals-us 30")
    expect(sum(c["flows"] for c in load["slowdown"].values()) == load["flows"],
           f"{load['slowdown']}")
    words = tool.run(f"{SMALL} --workload poisson --sizes websearch --arrivals-us 30").stdout
    expect("slowdown" in words, "text: no slowdown")


def without_costs(report):
    return {key: value for key, value in report.items() if key not in COSTS}


def check_determinism(tool):
    for transport in ("mrc", "rocev2"):
        base = f"{SMALL} --loss 0.01 --transport {transport}"
        first, again, other = (tool.json(f"{base} --seed {seed}") for seed in (7, 7, 8))
        expect(without_costs(first) == without_costs(again), f"{transport}: two runs of one seed")
        expect(first["trace_hash"] != other["trace_hash"], f"{transport}: two seeds, one run")
    watched = tool.json(f"{SMALL} --seed 7 --loss 0.01 --series w.csv --report w.html "
                        "--pcap w.pcapng --pcap-link 't0:0/t1:*/plane:0'")
    plain = tool.json(f"{SMALL} --seed 7 --loss 0.01")
    expect(without_costs(watched) == without_costs(plain), "looking changes the run")


def check_explain(tool):
    for transport in ("mrc", "rocev2"):
        base = f"{SMALL} --seed 7 --loss 0.01 --transport {transport}"
        explained = tool.json(f"{base} --explain 3")
        flows = explained.pop("explain")
        expect(without_costs(explained) == without_costs(tool.json(base)), "explaining changes it")
        expect(len(flows) == 3, f"{len(flows)} flows explained")
        for flow in flows:
            parts = flow["parts_us"]
            whole = sum(parts.values())
            expect(abs(whole / flow["us"] - 1) < 1e-4, f"{parts} are not {flow['us']}")
            expect(flow["packets"] > 0 and parts["sending"] > 0, f"{flow}")
            expect(sum(flow["copies_not_placed"].values()) >= flow["copies"], f"{flow}")
    text = tool.run(f"{SMALL} --compare mrc,rocev2 --explain 1").stdout
    for word in ("mrc: host", "rocev2: host", "sends", "answer", "sent again"):
        expect(word in text, f"explain: no {word!r}")


def check_flags(tool):
    """Everything that can be switched runs to its end and makes a difference."""
    for base, switches in SWITCHES.items():
        plain = without_costs(tool.json(base))
        for flags in switches:
            report = tool.json(f"{base} {flags}")
            expect(report.get("flows") == report.get("completed"), f"{flags}: not finished")
            expect(report.get("bytes_wrong") == 0, f"{flags}: bytes are wrong")
            expect(without_costs(report) != plain, f"{flags}: changes nothing in {base}")
    checked = tool.json(f"{SMALL} --verify")
    expect(checked["bytes_wrong"] == 0, "--verify: bytes are wrong")
    expect(without_costs(checked) == without_costs(tool.json(SMALL)), "--verify changes the run")


def check_config(tool):
    (tool.folder / "run.toml").write_text(
        'workload = "incast"\nsenders = 5\nhosts = 16\nt0 = 4\nt1 = 4\nplanes = 2\ngbps = 200\n'
        'bytes = "200kB"\nseed = 3\nno_trim = true\nloss = 0.01\n'
        'fail = ["t0:1/t1:2/plane:0 down @5us", "t1:3/plane:1 rate 50% @0"]\n', encoding="utf-8")
    (tool.folder / "plan.txt").write_text(
        "# two faults\nt0:1/t1:2/plane:0 down @5us\n\nt1:3/plane:1 rate 50% @0\n",
        encoding="utf-8")
    flags = f"{SMALL} --workload incast --senders 5 --seed 3 --no-trim --loss 0.01"
    by_file = tool.json("--config run.toml")
    by_flags = tool.json(f"{flags} {FAULT} --fail 't1:3/plane:1 rate 50% @0'")
    by_plan = tool.json(f"{flags} --fail-file plan.txt")
    expect(without_costs(by_file) == without_costs(by_flags), "file and flags disagree")
    expect(without_costs(by_file) == without_costs(by_plan), "fault file and flags disagree")
    expect(tool.json("--config run.toml --seed 4")["seed"] == 4, "a flag does not beat the file")


def check_exit_codes(tool):
    report = tool.json(f"{SMALL} --until 3us", status=4)
    expect(report["completed"] < report["flows"], "everything finished in 3 us")
    tool.json(f"{SMALL} --workload pair --fail 'host:15/plane:* down @2us' --timeout 1 "
              "--until 10s", status=1)


class Page(html.parser.HTMLParser):
    """Counts elements and notes whatever would be fetched from elsewhere."""

    def __init__(self):
        super().__init__()
        self.counts = {}
        self.outside = []
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.outside += [v for k, v in attrs if k in ("src", "href", "xlink:href")]
        if tag not in ("meta", "line", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()


def check_outputs(tool):
    arguments = (f"{SMALL} {FAULT} --compare mrc,rocev2 --csv flows_out.csv --series series.csv "
                 "--report page.html")
    # The baseline may lose a flow over the dead cable for good; files are written all the same.
    pair = json.loads(tool.run(f"{arguments} --json").stdout)
    expect([run["transport"] for run in pair["runs"]] == ["mrc", "rocev2"], "not both transports")
    with open(tool.folder / "flows_out.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    expect(len(rows) == 32, f"{len(rows)} flows in the CSV file")
    times = [float(row["fct_us"]) for row in rows if row["transport"] == "mrc"]
    expect(abs(max(times) - pair["runs"][0]["fct_us"]["max"]) < 0.01, "CSV and JSON disagree")
    with open(tool.folder / "series.csv", encoding="utf-8") as file:
        series = list(csv.DictReader(file))
    needed = {"time_us", "goodput_gbps", "goodput_gbps_plane1", "queued_bytes_plane1",
              "deepest_queue_bytes", "mean_cwnd_bytes", "evs_good", "evs_bad"}
    expect(needed <= series[0].keys(), f"series lacks {sorted(needed - series[0].keys())}")
    expect(any(int(row["mean_cwnd_bytes"]) > 0 for row in series), "no window in the series")
    expect(any(int(row["deepest_queue_bytes"]) > 0 for row in series), "no queue in the series")
    page = Page()
    page.feed((tool.folder / "page.html").read_text(encoding="utf-8"))
    expect(page.counts.get("svg", 0) >= 6, f"{page.counts.get('svg')} plots")
    expect(page.counts.get("rect", 0) > 10, "the heat map is empty")
    expect(not page.outside, f"the page needs {page.outside}")
    expect(not page.open, f"elements left open: {page.open}")


def check_failed_flows_in_the_plot(tool):
    """The line of a run in which flows failed ends lower than that of one in which none did."""
    pair = json.loads(tool.run(
        "--topology tiny --workload permutation --bytes 1MB --compare mrc,rocev2 "
        "--fail 't0:0/t1:0/plane:0 down @0' --fail 't0:1/t1:1/plane:1 down @0' "
        "--report failed.html --json").stdout)
    whole, broken = pair["runs"]
    expect(whole["failed"] == 0 < broken["failed"], "the wrong flows failed")
    page = (tool.folder / "failed.html").read_text(encoding="utf-8")
    lines = re.findall(r'<polyline [^>]*points="([^"]+)"', page)[:2]
    depths = [float(line.split()[-1].split(",")[1]) for line in lines]  # from the top of the page
    expect(depths[0] < depths[1], f"the lines of all and of some flows end at {depths}")


def check_text(tool):
    result = tool.run(f"{SMALL} {FAULT}")
    expect(result.returncode == 0, f"text: exit status {result.returncode}")
    for word in ("worst flow / alone", "goodput", "dead path", "trace"):
        expect(word in result.stdout, f"text: no {word!r}")
    expect("\033" not in result.stdout and result.stderr == "", "text: colours or noise")
    help_text = tool.run("--help").stdout
    for word in ("--workload", "--fail", "--pcap-link", "permutation", "incast"):
        expect(word in help_text, f"help: no {word}")


def tshark_fields(tool, capture, fields):
    command = ["tshark", "-n", "-r", capture, "-T", "fields", "-E", "separator=|"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, cwd=tool.folder, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"tshark refuses {capture}: {done.stderr}")
    return [dict(zip(fields, line.split("|"))) for line in done.stdout.splitlines()]


def check_capture(tool):
    if shutil.which("tshark") is None:
        print("sim_smoke: there is no tshark, captures are not read")
        return
    fields = ["frame.interface_name", "frame.protocols", "ipv6.dst", "infiniband.bth.opcode",
              "infiniband.bth.psn", "frame.len"]
    tool.json(f"{SMALL} --workload incast --senders 12 --pcap mrc.pcapng "
              "--pcap-link 't0:0>host:0/plane:0' --pcap-link 't0:1/t1:1/plane:1'")
    rows = tshark_fields(tool, "mrc.pcapng", fields)
    expect(len(rows) > 100, f"{len(rows)} frames in the capture")
    names = {row["frame.interface_name"] for row in rows}
    expect(names == {"t0:0>host:0/plane:0", "t0:1>t1:1/plane:1", "t1:1>t0:1/plane:1"}, f"{names}")
    expect(all(row["frame.protocols"] == "eth:ethertype:ipv6:ipv6:udp:infiniband" for row in rows),
           f"protocols {sorted({row['frame.protocols'] for row in rows})}")
    opcodes = {int(row["infiniband.bth.opcode"], 0) for row in rows}
    expect({0xC7, 0xDC} <= opcodes, f"opcodes {sorted(opcodes)}")
    expect(all(row["infiniband.bth.psn"] for row in rows), "a frame without PSN")
    outer = {row["ipv6.dst"].split(",")[0] for row in rows
             if row["frame.interface_name"] == "t0:0>host:0/plane:0"}
    expect(outer == {"fc00:1:100::"}, f"the last link shows carriers {outer}")
    tool.json(f"{SMALL} --transport rocev2 --pcap roce.pcapng --pcap-link 'host:0/plane:*'")
    rows = tshark_fields(tool, "roce.pcapng", fields)
    opcodes = {int(row["infiniband.bth.opcode"], 0) for row in rows}
    expect({0x06, 0x07, 0x08, 0x11} <= opcodes, f"RoCEv2 opcodes {sorted(opcodes)}")


def main():
    programs.leave_cleanly_when_told()
    with programs.own_folder() as folder:
        tool = Tool(sys.argv[1], folder)
        for check in (check_usage, check_json, check_faults, check_victim_and_steps,
                      check_seeds, check_shares, check_determinism, check_explain, check_flags,
                      check_config, check_exit_codes, check_outputs,
                      check_failed_flows_in_the_plot, check_text, check_capture):
            try:
                check(tool)
            except (KeyError, ValueError, TypeError, IndexError, OSError) as error:
                problems.append(f"{check.__name__}: {error!r}")
    for problem in problems:
        print(problem)
    print(f"sim_smoke: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
