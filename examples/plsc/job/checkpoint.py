"""What a pass leaves on disk, and how it is found again: a folder for each pass and trainer, a file for each variable.

A folder counts only with its mark, complete.json, which is written last: a crash in between leaves nothing to resume
from by accident. meta.pickle is written since PLSC's own tools look for it, and never read: a pickle can run code.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from typing import NamedTuple

import numpy as np
import tensor_file
from shards import Shard, shard

MARK = "complete.json"
COUNTER = "@LR_DECAY_COUNTER@"
RATE = "learning_rate_0"
VELOCITY = "_velocity_0"


class Origin(NamedTuple):
    """A pass that training goes on from: its number and a folder for each of its trainers."""

    number: int
    classes: int
    folders: list[str]


def centres_name(rank: int) -> str:
    return f"dist@arcface@rank@{rank:05}.w_0"


def save(folder: str, number: int, variables: dict[str, np.ndarray], *, classes: int, rank: int, trainers: int) -> None:
    """One trainer's part of a pass; the first trainer's has what they all share."""
    target = os.path.join(folder, str(number))
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    for name, values in variables.items():
        tensor_file.write(os.path.join(target, name), values)
    if rank == 0:
        centres = variables[centres_name(0)]
        about = {"pretrain_nranks": trainers, "emb_dim": len(centres), "num_classes": classes}
        with open(os.path.join(target, "meta.pickle"), "wb") as file:
            pickle.dump(about, file, protocol=2)
    sizes = {name: os.path.getsize(os.path.join(target, name)) for name in sorted(os.listdir(target))}
    mark = {"pass": number, "classes": classes, "rank": rank, "trainers": trainers, "files": sizes}
    with open(os.path.join(target, f"{MARK}.part"), "w") as part:
        json.dump(mark, part, indent=1)
        part.flush()
        os.fsync(part.fileno())
    os.replace(os.path.join(target, f"{MARK}.part"), os.path.join(target, MARK))


def complete(folder: str) -> dict[int, dict]:
    """The marks of a trainer's complete passes, by pass."""
    found = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if name.isdigit() and (mark := _mark(os.path.join(folder, name))) is not None:
            found[int(name)] = mark
    return found


def origin(path: str) -> Origin:
    """The newest pass that is complete in the results of a job, whatever the number of its trainers was."""
    folders = _rank_folders(path)
    first = complete(folders[0]) if folders else {}
    for number in sorted(first, reverse=True):
        trainers = first[number]["trainers"]
        if len(folders) >= trainers and all(
            _belongs(complete(folder).get(number), first[number], rank)
            for rank, folder in enumerate(folders[:trainers])
        ):
            return Origin(number, first[number]["classes"], folders[:trainers])
    raise SystemExit(
        f"{path} holds no pass that all of its trainers completed: name the folder that has rank-0, rank-1, …, "
        "as `paddlecloud cp JOB results` brings it"
    )


def shared(of: Origin, names: list[str]) -> dict[str, np.ndarray]:
    """What all trainers have in common, from the first one's folder."""
    return {name: tensor_file.read(os.path.join(of.folders[0], str(of.number), name)) for name in names}


def centres(of: Origin, wanted: Shard) -> tuple[np.ndarray, np.ndarray]:
    """The classes of a trainer of now and their velocity, from the shards of the trainers of then; a row for each."""
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for rank, folder in enumerate(of.folders):
        had = shard(of.classes, rank, len(of.folders))
        first, last = max(had.first, wanted.first), min(had.last, wanted.last)
        if first < last:
            for part, ending in zip(parts, ("", VELOCITY)):
                values = tensor_file.read(os.path.join(folder, str(of.number), centres_name(rank) + ending))
                part.append(values[:, first - had.first : last - had.first])
    return np.concatenate(parts[0], axis=1).T.copy(), np.concatenate(parts[1], axis=1).T.copy()


def _mark(folder: str) -> dict | None:
    """What a pass says of itself; None where it is not there, or files are not as it says."""
    try:
        with open(os.path.join(folder, MARK)) as file:
            mark = json.load(file)
        whole = all(os.path.getsize(os.path.join(folder, name)) == size for name, size in mark["files"].items())
    except (OSError, ValueError, KeyError):
        return None
    return mark if whole else None


def _belongs(mark: dict | None, first: dict, rank: int) -> bool:
    return mark is not None and mark["rank"] == rank and all(mark[key] == first[key] for key in ("classes", "trainers"))


def _rank_folders(path: str) -> list[str]:
    """rank-0, rank-1, … in a folder of results, or in the one job's that is in it; else the folder itself."""
    names = os.listdir(path) if os.path.isdir(path) else []
    ranks = sorted((int(found[1]), name) for name in names if (found := re.fullmatch(r"rank-(\d+)", name)))
    if ranks:
        return [os.path.join(path, name) for _, name in ranks]
    inside = [name for name in names if name == "output" or name.startswith("job-")]
    if len(inside) == 1:
        return _rank_folders(os.path.join(path, inside[0]))
    return [path] if names else []
