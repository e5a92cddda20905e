"""Faults by kind, as they add up: tests/faults.tsv, one line a run and one column a kind.

A kind is what a test program calls it: "fault loss" of the simulated world, "network fault down" of
labs, "call fault send ENOBUFS" of system calls. A kind that is new gets a column; the runs before it
had none.
"""

import pathlib

LEDGER = pathlib.Path(__file__).resolve().parent.parent / "tests/faults.tsv"
FIRST = ("date", "commit", "by")  # `by`: test, or soak, whose seeds are in another ledger
PREFIXES = ("fault ", "network fault ", "call fault ")


def of_lines(lines):
    """The counts by kind among the result lines of a test program."""
    return {label: count for label, count in lines.items() if label.startswith(PREFIXES)}


def rows(path):
    """Each line as its first columns and its counts by kind."""
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    table = [line.split("\t") for line in lines]
    return [(line[:len(FIRST)],
             {kind: int(count) for kind, count in zip(table[0][len(FIRST):], line[len(FIRST):])})
            for line in table[1:]]


def add(path, first, counts):
    """Adds a line; what has no faults is no line."""
    if not any(counts.values()):
        return
    table = [*rows(path), (list(first), counts)]
    kinds = list(dict.fromkeys(kind for _, known in table for kind in known))
    lines = ["\t".join((*FIRST, *kinds))]
    lines += ["\t".join((*head, *(str(known.get(kind, 0)) for kind in kinds)))
              for head, known in table]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def totals(path, by=None):
    """By kind, of the runs of `by` alone where it is given."""
    found = {}
    for head, counts in rows(path):
        for kind, count in counts.items():
            if by is None or head[2] == by:
                found[kind] = found.get(kind, 0) + count
    return found
