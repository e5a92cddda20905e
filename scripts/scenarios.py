#!/usr/bin/env python3
"""Runs the scenarios of scenarios/*.toml and holds their results against the bars.

Every scenario is run with each of its seeds and placements; the worst of all is what counts. docs/scenarios.md
says how a scenario is written. Exit status: 0 every bar is met, 1 a bar is missed or a run failed,
2 a scenario file or the command line is wrong.
"""

import argparse
import ast
import concurrent.futures
import fnmatch
import json
import math
import operator
import pathlib
import shlex
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = {"title", "tags", "seeds", "placements", "common", "run", "cases", "measure", "notes"}
MEASURE_KEYS = {"what", "value", "better", "bar", "goal", "peer"}
RUN_SECONDS = 1200  # no single run takes this long unless something is wrong


# Student's t for 95 %, two sides, by degrees of freedom from 1 on.
STUDENT_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
               2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
               2.060, 2.056, 2.052, 2.048, 2.045, 2.042)


def half_width(values):
    """Of the 95 % confidence interval of the mean; 0 where there is one value only."""
    count = len(values)
    if count < 2:
        return 0.0
    mean = sum(values) / count
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (count - 1))
    z, n = 1.959964, count - 1
    t = (STUDENT_T95[n - 1] if n <= len(STUDENT_T95)
         else z * (1 + (z ** 2 + 1) / (4 * n) + (5 * z ** 4 + 16 * z ** 2 + 3) / (96 * n ** 2)))
    return t * deviation / math.sqrt(count)


class BadScenario(Exception):
    """A file that does not say what it should; the text says where and why."""


# -- expressions over results ---------------------------------------------------------------------

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Div: operator.truediv}
FUNCTIONS = {"min": min, "max": max, "abs": abs}


def evaluate(node, runs):
    """Value of a parsed expression; `runs` maps names of runs to their JSON objects."""
    if isinstance(node, ast.Expression):
        return evaluate(node.body, runs)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        return runs[node.id]
    if isinstance(node, ast.Attribute):
        return evaluate(node.value, runs)[node.attr]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.left, runs), evaluate(node.right, runs))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return FUNCTIONS[node.func.id](*(evaluate(argument, runs) for argument in node.args))
    raise KeyError(ast.unparse(node))


def names_in(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - FUNCTIONS.keys()


# -- scenario files -------------------------------------------------------------------------------

class Measure:
    """One line of the table."""

    def __init__(self, where, table):
        unknown = table.keys() - MEASURE_KEYS
        if unknown or not {"what", "value"} <= table.keys():
            raise BadScenario(f"{where}: a measure has what, value and perhaps "
                              f"{', '.join(sorted(MEASURE_KEYS - {'what', 'value'}))}"
                              + (f", not {', '.join(sorted(unknown))}" if unknown else ""))
        self.what = table["what"]
        self.better = table.get("better", "lower")
        if self.better not in ("lower", "higher"):
            raise BadScenario(f"{where}: better is lower or higher, not {self.better}")
        try:
            self.tree = ast.parse(table["value"], mode="eval")
        except SyntaxError as error:
            raise BadScenario(f"{where}: value: {error.msg}") from error
        self.given = {key: table.get(key) for key in ("bar", "goal", "peer")}

    def limit(self, key, label):
        """bar, goal or peer of a case: one for all, or a table by label."""
        value = self.given[key]
        return value.get(label) if isinstance(value, dict) else value

    def worst(self, values):
        return max(values) if self.better == "lower" else min(values)

    def reaches(self, value, limit):
        return value <= limit if self.better == "lower" else value >= limit


class Case:
    """A scenario, or one of the variants it lists: its runs and what is read from them."""

    def __init__(self, name, scenario, table):
        self.label = table.get("label", "")
        self.name = f"{name} {self.label}".strip()
        self.measures = scenario["measures"]
        self.samples = [(placement, seed) for placement in scenario["placements"]
                        for seed in scenario["seeds"]]
        self.runs = {}
        self.may_fail = set()  # runs that need not finish, such as a baseline that breaks
        for run, args in scenario["run"].items():
            merged = scenario["common"] | args | table.get("args", {}) | table.get(run, {})
            if merged.pop("may_fail", False):
                self.may_fail.add(run)
            self.runs[run] = merged

    def commands(self, sample):
        return {run: command_line(args, sample) for run, args in self.runs.items()}


def name_of(sample):
    placement, seed = sample
    return f"{placement}/{seed}" if placement else str(seed)


def command_line(args, sample):
    """Arguments of `mrc sim` as a tuple; a seed of its own makes a run the same for all seeds."""
    placement, seed = sample
    words = ["sim"]
    given = {"placement": placement} if placement else {}
    for key, value in ({"seed": seed} | given | args).items():
        flag = "--" + key.replace("_", "-")
        for item in value if isinstance(value, list) else [value]:
            if item is True:
                words.append(flag)
            elif item is not False:
                words += [flag, str(item)]
    return tuple(words + ["--json"])


def parse_seeds(given):
    """A list, or a text such as "1-20" or "1,4,7-9"."""
    if isinstance(given, list) and given and all(type(seed) is int for seed in given):
        return given
    seeds = []
    for part in given.split(",") if isinstance(given, str) else []:
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise ValueError
        seeds += range(int(first), int(last or first) + 1)
    if not seeds:
        raise ValueError
    return seeds


def load(path, seeds):
    """The cases of one file and its tags."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadScenario(f"{path}: {error}") from error
    unknown = table.keys() - KEYS
    if unknown:
        raise BadScenario(f"{path}: unknown key {', '.join(sorted(unknown))}")
    for key in ("title", "tags", "run", "measure"):
        if not table.get(key):
            raise BadScenario(f"{path}: {key} is missing")
    try:
        own_seeds = parse_seeds(table.get("seeds", [1, 2, 3, 4, 5]))
    except ValueError:
        raise BadScenario(f"{path}: seeds are a list of numbers, or a text such as "
                          "\"1-20\"") from None
    placements = table.get("placements", [""])
    if not isinstance(placements, list) or not placements:
        raise BadScenario(f"{path}: placements are a list of names that mrc sim knows")
    scenario = {"common": table.get("common", {}), "run": table["run"],
                "seeds": seeds or own_seeds, "placements": placements,
                "measures": [Measure(path, m) for m in table["measure"]]}
    for measure in scenario["measures"]:
        missing = names_in(measure.tree) - scenario["run"].keys()
        if missing:
            raise BadScenario(f"{path}: '{measure.what}' names no run of this file: "
                              f"{', '.join(sorted(missing))}")
    return [Case(path.stem, scenario, c) for c in table.get("cases", [{}])], set(table["tags"])


# -- running --------------------------------------------------------------------------------------

def execute(program, words):
    """Runs one simulation. The result, or a string that says what went wrong."""
    try:
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False,
                              timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return f"took more than {RUN_SECONDS} s"
    try:
        result = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return f"exit {done.returncode}: {lines[-1] if lines else 'no output'}"
    if result["bytes_wrong"] > 0:
        return f"{result['bytes_wrong']} bytes are wrong"
    return result


class Runner:
    """Runs each distinct command once, a few at a time, and judges cases as they are complete."""

    def __init__(self, program, jobs, cases):
        self.program = program
        self.jobs = jobs
        self.cases = cases
        self.results = {}
        self.started = time.monotonic()

    def run(self, on_case):
        wanted = {}  # command -> cases that wait for it
        waiting = {}
        for case in self.cases:
            commands = {c for sample in case.samples for c in case.commands(sample).values()}
            waiting[case] = len(commands)
            for command in commands:
                wanted.setdefault(command, []).append(case)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            order = {c: n for n, case in enumerate(self.cases) for sample in case.samples
                     for c in reversed(case.commands(sample).values())}
            futures = {pool.submit(execute, self.program, c): c
                       for c in sorted(wanted, key=lambda c: order[c])}
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                command = futures[future]
                self.results[command] = future.result()
                self.show_progress(done, len(futures))
                for case in wanted[command]:
                    waiting[case] -= 1
                    if waiting[case] == 0:
                        on_case(case, self.judge(case))

    def show_progress(self, done, total):
        if not sys.stderr.isatty():
            return
        spent = time.monotonic() - self.started
        left = spent / done * (total - done)
        print(f"\r{done}/{total} runs, {spent:.0f} s, about {left:.0f} s left\033[K",
              end="\n" if done == total else "\r", file=sys.stderr, flush=True)

    def judge(self, case):
        return [self.judge_measure(case, measure) for measure in case.measures]

    def judge_measure(self, case, measure):
        row = {"scenario": case.name, "what": measure.what, "better": measure.better,
               "bar": measure.limit("bar", case.label), "goal": measure.limit("goal", case.label),
               "peer": measure.limit("peer", case.label), "seeds": {}, "verdict": "-"}
        problems = []
        for sample in case.samples:
            seed = name_of(sample)
            commands = case.commands(sample)
            runs = {name: self.results[commands[name]] for name in names_in(measure.tree)}
            try:
                row["seeds"][seed] = float(evaluate(measure.tree, runs))
            except (KeyError, TypeError, ZeroDivisionError):
                said = [r for r in runs.values() if isinstance(r, str)]
                problems.append(f"seed {seed}: {said[0] if said else 'has no such value'}")
            for name, result in runs.items():
                if (isinstance(result, dict) and not result["finished"]
                        and name not in case.may_fail):
                    problems.append(f"seed {seed}: {name} did not finish")
        self.finish_row(row, measure, case, problems)
        return row

    def finish_row(self, row, measure, case, problems):
        values = list(row["seeds"].values())
        if values:
            row["worst"] = measure.worst(values)
            row["mean"] = sum(values) / len(values)
            row["ci95"] = half_width(values)
            worst = next(s for s in case.samples if row["seeds"].get(name_of(s)) == row["worst"])
            commands = case.commands(worst)
            row["commands"] = {name: shlex.join(("mrc",) + commands[name])
                               for name in sorted(names_in(measure.tree))}
        if problems:
            row["problems"] = problems
            row["verdict"] = "FAILED"
        elif row["goal"] is not None and measure.reaches(row["worst"], row["goal"]):
            row["verdict"] = "goal"
        elif row["bar"] is not None:
            row["verdict"] = "bar" if measure.reaches(row["worst"], row["bar"]) else "MISSED"
        elif row["goal"] is not None:
            row["verdict"] = "not yet"


# -- output ---------------------------------------------------------------------------------------

COLUMNS = ("scenario", "what", "peer", "bar", "goal", "worst", "mean", "ci95", "verdict")
HEADINGS = COLUMNS[:-2] + ("± 95 %", "verdict")
WIDTHS = (34, 40, 12, 8, 8, 9, 9, 7, 8)


def show(value):
    if value is None:
        return ""
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def format_row(cells):
    text = []
    for number, (cell, width) in enumerate(zip(cells, WIDTHS)):
        text.append(cell.ljust(width) if number < 2 or number == 8 else cell.rjust(width))
    return "  ".join(text).rstrip()


def print_case(rows):
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    previous = None
    for row in rows:
        cells = [show(row.get(column)) for column in COLUMNS]
        if cells[0] == previous:
            cells[0] = ""
        previous = row["scenario"]
        print(format_row(cells), flush=True)
        for problem in row.get("problems", []):
            print(f"    {problem}")
        if row["verdict"] in ("MISSED", "FAILED"):
            for command in list(row.get("commands", {}).values())[:2]:
                print(f"    {command}")


def write_results(path, cases, rows):
    """For scripts/test_summary.py: the worst seed of each measure."""
    lines = {f"{row['scenario']}: {row['what']}": round(row.get("worst", float("nan")), 3)
             for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"name": f"scenario {cases[0].name.split()[0]}", "lines": lines}),
                    encoding="utf-8")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="scenarios to run, * allowed (default: all)")
    parser.add_argument("--tag", help="only scenarios with this tag")
    parser.add_argument("--mrc", default=ROOT / "build/release/tools/mrc/mrc", help="the program")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "scenarios")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time")
    parser.add_argument("--seeds", help="other seeds than the files say, e.g. 6,7,8 or 1-20")
    parser.add_argument("--json", type=pathlib.Path, help="write all results to this file")
    parser.add_argument("--results", type=pathlib.Path, help="write a summary for the test report")
    parser.add_argument("--list", action="store_true", help="list the scenarios and stop")
    return parser.parse_args()


def select(arguments):
    """The cases to run, in order of file and case."""
    try:
        seeds = parse_seeds(arguments.seeds) if arguments.seeds else None
    except ValueError:
        raise BadScenario(f"--seeds {arguments.seeds}: a list such as 1,4,7-9 is expected") from None
    cases = []
    for path in sorted(arguments.folder.glob("*.toml")):
        if arguments.names and not any(fnmatch.fnmatch(path.stem, n) for n in arguments.names):
            continue
        loaded, tags = load(path, seeds)
        if not arguments.tag or arguments.tag in tags:
            cases += loaded
    if not cases:
        raise BadScenario(f"{arguments.folder}: no scenario matches")
    return cases


def main():
    arguments = parse_arguments()
    try:
        cases = select(arguments)
    except BadScenario as error:
        print(f"scenarios: {error}", file=sys.stderr)
        return 2
    if arguments.list:
        for case in cases:
            print(f"{case.name}: {len(case.samples)} seeds, {', '.join(case.runs)}")
        return 0
    if not pathlib.Path(arguments.mrc).exists():
        print(f"scenarios: {arguments.mrc} does not exist; build it first", file=sys.stderr)
        return 2
    print(format_row(HEADINGS))
    judged = {}

    def on_case(case, rows):
        judged[case] = rows
        print_case(rows)

    runner = Runner(arguments.mrc, arguments.jobs, cases)
    runner.run(on_case)
    rows = [row for case in cases for row in judged[case]]
    verdicts = [row["verdict"] for row in rows]
    if arguments.json:
        arguments.json.write_text(json.dumps({"schema": "mrc.scenarios/1", "rows": rows}, indent=1),
                                  encoding="utf-8")
    if arguments.results:
        write_results(arguments.results, cases, rows)
    bad = verdicts.count("MISSED") + verdicts.count("FAILED")
    print(f"{len(rows)} measures, {verdicts.count('goal')} at the goal, {bad} below the bar; "
          f"{time.monotonic() - runner.started:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
