"""A tiny model with PyTorch's DistributedDataParallel: by `python train.py` and by `torchrun train.py` alike."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "100"))


def main() -> None:
    gpus = torch.cuda.is_available()
    distributed = "RANK" in os.environ  # not on your own machine
    if distributed:
        dist.init_process_group("nccl" if gpus else "gloo")
    rank, world = (dist.get_rank(), dist.get_world_size()) if distributed else (0, 1)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if gpus else torch.device("cpu")
    inputs, targets = (part[rank::world].to(device) for part in points())
    torch.manual_seed(rank)  # each begins elsewhere: DDP gives all of them the first one's weights
    plane = torch.nn.Linear(4, 1).to(device)
    model = DistributedDataParallel(plane) if distributed else plane
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, STEPS + 1):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"rank {rank} of {world}  step {step}  loss {loss.item():.4f}")
    folder = Path(os.environ.get("OUTPUT_PATH", "output"))
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(plane.state_dict(), folder / "model.pt")
    (folder / "weights.txt").write_text(f"{plane.weight.tolist()} {plane.bias.tolist()}\n")
    if distributed:
        dist.destroy_process_group()


def points() -> tuple[torch.Tensor, torch.Tensor]:
    """Made-up points near a plane, the same everywhere."""
    dice = torch.Generator().manual_seed(7)
    inputs = torch.randn(240, 4, generator=dice)
    return inputs, inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]]) + 4


if __name__ == "__main__":
    main()
