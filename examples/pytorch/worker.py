"""One rank of the PyTorch examples; run.py starts them.

Usage: worker.py MODE RANK RANKS DIRECTORY

Modes: bench (collectives checked, then timed), short (the same without the longest and the other
collectives, for many ranks), train (DDP), cut (all-reduces while a port is away). Rank 0 writes
its findings to DIRECTORY/MODE.json.
"""

import json
import os
import pathlib
import sys
import time

import train as ddp  # sets what must be set before torch is loaded
import torch
import torch.distributed as dist

KIB = 1 << 10
MIB = 1 << 20
SWEEP = [4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB]
SHORT_SWEEP = [4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB]
OTHERS_BYTES = 64 * MIB
WARM_UP = 5
TRAIN_STEPS = 160
CUT_SECONDS = 6.0
CUT_BYTES = 16 * MIB


def expect(condition, what):
    if not condition:
        raise SystemExit(f"wrong data: {what}")


def check_collectives(rank, ranks):
    """Sums and copies of values that depend on rank and position, exact in float32."""
    for count in [1, 1000, 65_537, 4 * MIB]:
        base = torch.arange(count, device="cuda", dtype=torch.float32) % 1024
        values = base + rank
        dist.all_reduce(values)
        expect(torch.equal(values, base * ranks + sum(range(ranks))), f"all_reduce of {count}")
        values = base * (rank + 1)
        dist.broadcast(values, src=1)
        expect(torch.equal(values, base * 2), f"broadcast of {count}")
        parts = [torch.empty_like(base) for _ in range(ranks)]
        dist.all_gather(parts, base + rank)
        for source, part in enumerate(parts):
            expect(torch.equal(part, base + source), f"all_gather of {count}")
        sent = torch.cat([base + rank * 10 + to for to in range(ranks)])
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        expected = torch.cat([base + source * 10 + rank for source in range(ranks)])
        expect(torch.equal(received, expected), f"all_to_all of {count}")
    torch.cuda.synchronize()


def processor_seconds():
    """Of all threads but this one, which spins while it waits for the GPU."""
    total = 0
    for task in pathlib.Path("/proc/self/task").iterdir():
        if task.name == str(os.getpid()):
            continue
        try:
            total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    return total / 1e9


def time_one(operation, rounds):
    """Median seconds of one, and processor seconds of one, of all ranks together."""
    samples = []
    for index in range(rounds + WARM_UP):
        if index == WARM_UP:
            spent = processor_seconds()
        torch.cuda.synchronize()
        start = time.perf_counter()
        operation()
        torch.cuda.synchronize()
        if index >= WARM_UP:
            samples.append(time.perf_counter() - start)
    total = torch.tensor([(processor_seconds() - spent) / rounds], device="cuda")
    dist.all_reduce(total)
    samples.sort()
    return samples[len(samples) // 2], total.item()


def time_all_reduce(size_bytes):
    values = torch.zeros(size_bytes // 4, device="cuda")
    rounds = 200 if size_bytes <= 64 * KIB else 40 if size_bytes <= 16 * MIB else 12
    return time_one(lambda: dist.all_reduce(values), rounds)


def time_others(rank):
    """Collectives that move data one way, or between all."""
    values = torch.zeros(OTHERS_BYTES // 4, device="cuda")
    received = torch.empty_like(values)

    def send():
        if rank == 0:
            dist.send(values, dst=1)
        elif rank == 1:
            dist.recv(values, src=0)
    operations = {"send": send, "broadcast": lambda: dist.broadcast(values, src=0),
                  "all_to_all": lambda: dist.all_to_all_single(received, values)}
    return {name: time_one(operation, 12)[0] for name, operation in operations.items()}


def sweep(rank, ranks, sizes):
    check_collectives(rank, ranks)
    timings = {str(size): time_all_reduce(size) for size in sizes}
    return {"checked": True, "seconds": {size: one[0] for size, one in timings.items()},
            "processor_seconds": {size: one[1] for size, one in timings.items()}}


def bench(rank, ranks, _directory):
    return {**sweep(rank, ranks, SWEEP), "others": time_others(rank)}


def short(rank, ranks, _directory):
    return sweep(rank, ranks, SHORT_SWEEP)


def train(rank, _ranks, directory):
    """Data-parallel training of a small network; the losses of all steps."""
    losses = []
    started = time.perf_counter()

    def after_step(step, loss):
        losses.append(loss)
        if rank == 0:
            (directory / "progress").write_text(str(step), encoding="utf-8")
    ddp.train(rank, 0, TRAIN_STEPS, after_step)
    return {"losses": losses, "seconds": time.perf_counter() - started}


def cut(rank, _ranks, directory):
    """The times at which all-reduces ended, for as long as the test lasts."""
    values = torch.ones(CUT_BYTES // 4, device="cuda")
    go_on = torch.ones(1, device="cuda")
    for _ in range(5):
        dist.all_reduce(values)
    torch.cuda.synchronize()
    if rank == 0:
        (directory / "progress").write_text("0", encoding="utf-8")
    ends = []
    started = time.time()
    while True:
        dist.all_reduce(values)
        torch.cuda.synchronize()
        ends.append(time.time())
        values.fill_(1.0)
        if len(ends) % 16 == 0:
            # All ranks must stop after the same one.
            go_on.fill_(1.0 if time.time() - started < CUT_SECONDS else 0.0)
            dist.broadcast(go_on, src=0)
            if go_on.item() == 0.0:
                return {"started": started, "ends": ends, "bytes": CUT_BYTES}


def main():
    mode, rank, ranks, directory = (sys.argv[1], int(sys.argv[2]), int(sys.argv[3]),
                                    pathlib.Path(sys.argv[4]))
    torch.cuda.set_device(0)
    store = f"file://{directory}/{mode}.store"
    dist.init_process_group("nccl", init_method=store, rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", 0))
    findings = {"bench": bench, "short": short, "train": train, "cut": cut}[mode](
        rank, ranks, directory)
    findings["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    findings["torch"] = torch.__version__
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        (directory / f"{mode}.json").write_text(json.dumps(findings), encoding="utf-8")


if __name__ == "__main__":
    main()
