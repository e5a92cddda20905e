"""Data-parallel training of a small network under torchrun, over the network NCCL is told to use.

Usage: torchrun --nproc-per-node 2 examples/pytorch/train.py [STEPS]

Prints the loss every tenth of the way. More ranks than GPUs on a host share them; NCCL then takes
each rank for a host of its own, so that all data goes over the network.
"""

import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402  (the variable above must come first)
import torch.distributed as dist  # noqa: E402

WIDTH = 2048
OUTPUTS = 16
BATCH = 256


def make_model(device):
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    layers = []
    for _ in range(5):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, OUTPUTS)).cuda(device)
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=[device])


def train(rank, device, steps, after_step):
    """Trains; calls after_step(step, sum of all ranks' losses) each time."""
    model = make_model(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    generator = torch.Generator(device=f"cuda:{device}").manual_seed(100 + rank)
    inputs = torch.randn(BATCH, WIDTH, device=f"cuda:{device}", generator=generator)
    targets = inputs[:, :OUTPUTS].sin()
    for step in range(steps):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        after_step(step, total.item())


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    gpus = torch.cuda.device_count()
    if gpus == 0 or "RANK" not in os.environ:
        sys.exit("train.py: needs a GPU, and torchrun to start it")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if int(os.environ["LOCAL_WORLD_SIZE"]) > gpus:
        os.environ["NCCL_HOSTID"] = f"rank{rank}"
    device = int(os.environ["LOCAL_RANK"]) % gpus
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=torch.device("cuda", device))
    started = time.perf_counter()

    def show(step, loss):
        if rank == 0 and (step % max(1, steps // 10) == 0 or step == steps - 1):
            print(f"step {step:4}  loss {loss / ranks:.6f}", flush=True)
    train(rank, device, steps, show)
    if rank == 0:
        print(f"{ranks} ranks, {steps} steps in {time.perf_counter() - started:.1f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
