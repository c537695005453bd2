"""Lines of sinfo as nodes, and nodes as what a partition has."""

from __future__ import annotations

import pytest

from paddlecloud.backends.slurmnodes import Room, count_gpus, is_up, read, room
from paddlecloud.model.job import Resources

LINES = """\
n1   batch*  idle       0/8/0/8   16000  0     gpu:fake:4           gpu:fake:0(IDX:N/A)
n1   short   idle       0/8/0/8   16000  0     gpu:fake:4           gpu:fake:0(IDX:N/A)
n2   batch*  mixed      6/2/0/8   16000  4000  gpu:a:2,gpu:b:2(S:0) gpu:a:1(IDX:0),gpu:b:2(IDX:0-1)
n3   batch*  drained    0/0/8/8   16000  0     (null)               (null)
n4   batch*  allocated* 8/0/0/8   16000  0     (null)               gpu:0

slurm_load_node error: Unable to contact
"""


def test_a_partition_is_what_its_nodes_have_that_are_up() -> None:
    nodes = list(read(LINES))
    both = Resources(cpus=16, memory_bytes=32000 << 20, gpus=8)
    free = Resources(cpus=10, memory_bytes=28000 << 20, gpus=5)
    assert room(nodes, None) == Room(partition="batch", nodes=4, capacity=both, free=free)
    short = room(nodes, "short,batch")
    assert short is not None
    assert (short.partition, short.nodes, short.free.cpus) == ("short", 1, 8)
    assert room(nodes, "none") is None
    assert room([], None) is None


@pytest.mark.parametrize(("gres", "gpus"), [("(null)", 0), ("gpu:3", 3), ("gpu:a100:4(S:0-1),craynetwork:4", 4)])
def test_gpus_are_counted(gres: str, gpus: int) -> None:
    assert count_gpus(gres) == gpus


@pytest.mark.parametrize("state", ["down", "DOWN", "drained", "draining", "idle*", "unknown", "powered_down"])
def test_a_node_where_no_job_starts_is_not_up(state: str) -> None:
    assert not is_up(state)
    assert is_up("idle")
