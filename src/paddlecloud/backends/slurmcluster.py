"""What the config says of a Slurm cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.backends.base import WHOLE_MACHINE, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    name: str
    python: str = "python3"  # on the nodes
    options: Mapping[str, str]  # of sbatch, for every job
    grace_seconds: float = 30.0
    gate_seconds: float = 60.0
    build_seconds: float = 1800.0
    environments: Path | None = None
    hidden: Sequence[Path] = ()
    view: Callable[[], View] = lambda: WHOLE_MACHINE  # of tasks that run as the server's own account
    url: str = ""  # where nodes reach the server; "": they share its disk
    certificate: str = ""  # by which they know it (PEM); "": as they know all others
    token: Callable[[str], str] = lambda _: ""  # of the tasks of a handle
    accounts: Mapping[str, str]  # whose jobs run as which account of the nodes; others run as the server's own
    pack: bool = False  # tasks that ask for nodes of their own share them all the same
