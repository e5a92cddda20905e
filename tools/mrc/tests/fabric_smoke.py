#!/usr/bin/env python3
"""Runs `mrc fabric` and `mrc plan` as a user would and checks what they say.

Usage: fabric_smoke.py <mrc>. Prints one line for each thing that is wrong; exit status 1 if there
is any.
"""

import ipaddress
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import programs  # noqa: E402  (found through the line above)

USAGE_ERRORS = [
    "fabric",
    "fabric sing",
    "fabric show --bogus",
    "fabric show --topology nowhere",
    "fabric show --topology nowhere.toml",
    "fabric show --hosts 17",
    "fabric show --hosts -1",
    "fabric show --hosts many",
    "fabric show --planes 17",
    "fabric show --gbps 0",
    "fabric show --pods 2",
    "fabric show --switch t0:4",
    "fabric show --switch host:0",
    "fabric show --hosts 5000 --t0 1",
    "fabric path",
    "fabric path --from 0",
    "fabric path --from 0 --to 0",
    "fabric path --from 0 --to 16",
    "fabric path --from 0 --to 9 --plane 1",
    "fabric path --from 0 --to 9 --ev 0x1ffff",
    "fabric path --from 0 --to 9 --ev seven",
    "fabric path --carrier fc00:9::1",
    "fabric path --carrier nonsense",
    "fabric export",
    "fabric export --all",
    "fabric export --switch t0:0 --out folder",
    "fabric export --switch t0:0 --all",
    "fabric export --switch t0:0 --format cisco",
    "fabric export --switch t0:0 --port-prefix a;b",
    "fabric export --switch t0:0 --port-step 0",
    "fabric show --cables 0",
    "fabric show --cables 2 --pods 2 --t2 2",
    "fabric show --hosts 3000 --t0 3000 --t1 1 --cables 10",
    "plan --bogus",
    "plan --hosts 0-3",
    "plan --nics 8 --planes 2 --out folder --hosts 0-8",
    "plan --nics 8 --planes 2 --out folder --hosts x",
    "plan --nics 8 --planes 2 --out folder --host-port-prefix a;b",
    "plan --nics 0",
    "plan --nics 131073",
    "plan --planes 0",
    "plan --switch-tbps 0.1",
    "plan --nic-gbps -1",
    "plan --optic-watts many",
]

problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


def run(program, line):
    return programs.run([program, *line.split()])


def output(program, line):
    result = run(program, line)
    expect(result.returncode == 0, f"mrc {line}: exit status {result.returncode}")
    # A slow machine is told that it takes long.
    errors = [text for text in result.stderr.splitlines() if not text.endswith(" s so far")]
    expect(not errors, f"mrc {line}: {result.stderr!r} on stderr")
    return result.stdout


def check_usage(program):
    for line in USAGE_ERRORS:
        result = run(program, line)
        expect(result.returncode == 2, f"mrc {line}: exit status {result.returncode}, not 2")
        expect(result.stdout == "", f"mrc {line}: wrote to stdout")
        expect(len(result.stderr.splitlines()) == 1, f"mrc {line}: {result.stderr!r}")
    for line in ("fabric --help", "fabric show --help", "fabric export --help", "plan --help"):
        expect("Usage" in output(program, line), f"mrc {line}: no usage")


def check_presets(program):
    names = [line.split()[0] for line in output(program, "fabric presets").splitlines()]
    expect("paper-131072" in names, "the paper's fabric is not among the presets")
    for name in names:
        shown = json.loads(output(program, f"fabric show --json --topology {name}"))
        text = output(program, f"fabric show --topology {name}")
        expect(f"{shown['switches']:,} switches" in text, f"{name}: text and JSON differ")


def check_rows(program):
    text = output(program, "fabric show --topology tiny --cables 2").splitlines()[1:]
    names = [line[:20].strip() for line in text]
    expect(len(names) == len(set(names)), f"rows of one name: {names}")


def check_topology_file(program, folder):
    file = folder / "lab.toml"
    file.write_text('preset = "tiny"\nplanes = 3\n')
    shown = json.loads(output(program, f"fabric show --json --topology {file} --gbps 200"))
    expect(shown["planes"] == 3, "the file's planes were not used")
    expect(shown["host_link"]["bits_per_second"] == 200e9, "a flag does not win over the file")
    file.write_text("planes = 3\nhostz = 4\n")
    result = run(program, f"fabric show --topology {file}")
    expect(result.returncode == 2 and "lab.toml:2: " in result.stderr, f"bad key: {result.stderr}")


def check_paths(program):
    listed = json.loads(output(program, "fabric path --json --topology tiny --from 0 --to 9"))
    expect(len(listed["paths"]) == 8, f"{len(listed['paths'])} paths instead of 2 x 4")
    for path in listed["paths"]:
        expect(ipaddress.ip_address(path["carrier"]).version == 6, "a carrier is no address")
        for key in (f"--from 0 --to 9 --ev {path['ev']}", f"--carrier {path['carrier']}"):
            again = json.loads(output(program, f"fabric path --json --topology tiny {key}"))
            expect(again["paths"] == [path], f"{key} is another path")
    near = output(program, "fabric path --topology tiny --from 0 --to 1")
    expect("2 paths of 2 links" in near, "neighbours have one path per plane")


def check_export(program, folder):
    for form, suffix in (("linux", "sh"), ("tc", "sh"), ("frr", "conf"), ("frr8", "conf"),
                         ("sonic", "json")):
        out = folder / form
        flags = f"--topology tiny --format {form}"
        output(program, f"fabric export {flags} --all --out {out}")
        files = sorted(out.iterdir())
        expect(len(files) == 16, f"{form}: {len(files)} files instead of 16")
        expect(all(file.suffix == f".{suffix}" for file in files), f"{form}: odd file names")
        one = output(program, f"fabric export {flags} --switch t1:3/plane:1")
        infix = {"tc": "tc.", "frr8": "frr8."}.get(form, "")
        expect(one == (out / f"plane1-t1-3.{infix}{suffix}").read_text(), f"{form}: files differ")
        if form == "sonic":
            tables = [json.loads(file.read_text()) for file in files]
            expect(all(len(t["SRV6_MY_SIDS"]) == 1 for t in tables), "sonic: not one own uSID")
            routes = sum(len(t["STATIC_ROUTE"]) for t in tables)
            expect(routes == 2 * (4 * 8 + 4 * 4), f"sonic: {routes} routes")
            expect(all(len(t["QUEUE"]) == 3 * len(t["PORT_QOS_MAP"]) for t in tables),
                   "sonic: not three queues for each port")


def check_plan(program):
    plan = json.loads(output(program, "plan --json --switch-watts 1000 --optic-watts 10"))
    planes, tiers = plan["designs"][:2]
    expect((planes["switches"], tiers["switches"]) == (6144, 10240), "switches of the paper")
    expect(planes["optics"] * 3 == tiers["optics"] * 2, "optics of the paper")
    expect(planes["watts"] == 6144 * 1000 + planes["optics"] * 10, "power")
    text = output(program, "plan")
    for figure in ("6,144", "10,240", "12.5 %", "0.391 %", "60.0 %", "66.7 %"):
        expect(figure in text, f"{figure} is missing in the plan")


def check_build(program, folder):
    site = folder / "site"
    said = output(program, "plan --nics 30 --planes 2 --nic-gbps 200 --switch-tbps 1.6 "
                           f"--out {site}")
    expect("4 T0 and 2 T1 per plane, 4 cables between each two" in said, f"plan --out: {said}")
    expect("32 places for hosts" in said, "plan --out does not say that it rounds up")
    shown = json.loads(output(program, f"fabric show --json --topology {site}/fabric.toml"))
    expect((shown["hosts"], shown["cables_t0_t1"]) == (32, 4), f"fabric.toml: {shown}")
    cables = (site / "cables.csv").read_text().splitlines()
    expect(len(cables) - 1 == shown["cables"], f"{len(cables) - 1} lines for cables")
    expect("t0:3,swp16,t1:1,swp16,1" in cables, "cables.csv lacks the last cable")
    files = sorted((site / "hosts").iterdir())
    expect(len(files) == 32, f"{len(files)} files of hosts")
    environment = programs.device_environment(folder, MRC_CONFIG=str(files[0]))
    told = programs.run([program, "info", "--json"], env=environment)
    expect("eth1" in told.stdout and "line" not in told.stderr, f"a host's file: {told.stderr}")
    done = programs.run([program, "sim", "--topology", f"{site}/fabric.toml", "--bytes", "20kB",
                         "--json", "--fail", "t0:0/t1:1/cable:3/plane:1 down"])
    expect(done.returncode == 0, f"sim of the planned fabric: {done.stderr}")
    few = output(program, f"plan --out {folder}/few --hosts 5")
    named = [file.name for file in (folder / "few/hosts").iterdir()]
    expect(named == ["host-5.toml"], f"--hosts 5: {few}")


def main():
    program = sys.argv[1]
    programs.leave_cleanly_when_told()
    check_usage(program)
    check_presets(program)
    check_rows(program)
    check_paths(program)
    check_plan(program)
    with programs.own_folder() as folder:
        check_topology_file(program, pathlib.Path(folder))
        check_export(program, pathlib.Path(folder))
        check_build(program, pathlib.Path(folder))
    for problem in problems:
        print(problem)
    print(f"fabric smoke: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
