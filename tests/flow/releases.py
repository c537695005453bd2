"""The releases of the Go client of PaddlePaddle Cloud, by what tells them apart on the wire."""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """What tells a release of the client from the others on the wire."""

    name: str
    unsent: frozenset[str] = frozenset()  # keys of a submit that it does not know
    pfs: str | None = "api/v1/pfs"  # where it asks for files; None: it knows of none, and sends no package
    generation: int = 2  # of `cp`
    reads_bodies: bool = True  # else a submit is taken for refused by its status alone
    publishes: bool = True


_BETA = frozenset({"maxInstance", "minInstance"})
_ALPHA = _BETA | {"image", "registry", "faulttolerant"}
LAST = Release("2018-06")
RELEASES = (
    Release("0.1.0", _ALPHA, None, reads_bodies=False, publishes=False),
    Release("0.1.1-alpha.1", _ALPHA, None, reads_bodies=False, publishes=False),
    Release("0.1.1-beta.1", _BETA, "api/v1", 1, publishes=False),
    Release("0.1.1-beta.2", _BETA, "api/v1", 1, publishes=False),
    Release("0.1.1-beta.3", _BETA, generation=1, publishes=False),
    Release("2017-10", _BETA),
    LAST,
)
