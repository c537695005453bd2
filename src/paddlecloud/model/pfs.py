"""Paths of the PFS, the one file tree of every client: what a path means, and who may do what there.

    /pfs/<datacenter>/home/<user>/…           a user's own
    /pfs/<datacenter>/home/<user>/output/…    what their jobs left, in the first datacenter; written by jobs alone, and
                                              removed by its owner a job at a time
    /pfs/<datacenter>/public/…                for everybody to read; /pfs/public/… is that of the first datacenter
    /pfs/<datacenter>/shared/<name>/…         for the groups that it was granted to, to read or to write; for all
                                              others it is not there

Where a server has one datacenter, any name means it: the config of PaddlePaddle Cloud's client may call it anything.
A path is brought into its one normal form first, `..` and all, and only then compared with anything: every face of
the server asks here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from paddlecloud.model import paths
from paddlecloud.model.errors import ForbiddenError, InvalidError, NotFoundError

ROOT = "pfs"
HOME, PUBLIC, OUTPUT, SHARED = "home", "public", "output", "shared"
_WILD = frozenset("*?[")
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Access(StrEnum):
    READ = "read"
    WRITE = "write"
    REMOVE = "remove"


class Area(StrEnum):
    HOME = "home"
    OUTPUT = "output"
    PUBLIC = "public"
    SHARED = "shared"
    ABOVE = "above"  # /pfs, /pfs/<datacenter>, …/home, …/shared: folders that are there to be walked through


class Place(Struct, frozen=True, kw_only=True):
    """What a path means. `below` is what follows the area's own folder; "" is that folder."""

    area: Area
    datacenter: str = ""
    owner: str = ""  # of a home or of outputs
    folder: str = ""  # the name of a shared one
    below: str = ""
    parts: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The normal form of the path that named it."""
        return "/" + "/".join(self.parts)

    @property
    def top(self) -> str:
        """The path of the area's own folder."""
        below = self.below.count("/") + 1 if self.below else 0
        return "/" + "/".join(self.parts[: len(self.parts) - below])

    @property
    def root(self) -> str:
        """The area's own folder as its store names it: of outputs that is the one of all results, of all else that of
        the datacenter."""
        if self.area is Area.SHARED:
            return keeper_of(self.folder)
        return {Area.HOME: f"{HOME}/{self.owner}", Area.OUTPUT: self.owner}.get(self.area, PUBLIC)

    @property
    def keeper(self) -> str | None:
        """Whose space files take here: a user's, or a shared folder's own; None: nobody's in particular."""
        if self.area is Area.SHARED:
            return keeper_of(self.folder)
        return self.owner if self.area is Area.HOME else None

    @property
    def stored(self) -> str:
        """The place as its store names it."""
        return f"{self.root}/{self.below}" if self.below else self.root


class Who(Struct, frozen=True, kw_only=True):
    """Who asks. Operators fill the public folders. `shared` are the folders that were granted to groups of theirs, by
    datacenter and name, and whether they may write there; the server fills it in when it is asked for one."""

    user: str
    admin: bool = False
    shared: Mapping[tuple[str, str], bool] = field(default_factory=dict)


def home(datacenter: str, user: str) -> str:
    return f"/{ROOT}/{datacenter}/{HOME}/{user}"


def public(datacenter: str) -> str:
    return f"/{ROOT}/{datacenter}/{PUBLIC}"


def shared(datacenter: str, name: str) -> str:
    return f"/{ROOT}/{datacenter}/{SHARED}/{name}"


def keeper_of(folder: str) -> str:
    """What the space of a shared folder is known by; no user has a / in their name."""
    return f"{SHARED}/{folder}"


def is_pfs(text: str) -> bool:
    """Whether a path is meant to be of the PFS, rather than of the machine it was typed on."""
    return text == f"/{ROOT}" or text.startswith((f"/{ROOT}/", f"//{ROOT}/"))


def is_pattern(text: str) -> bool:
    return not _WILD.isdisjoint(text)


def locate(text: str, datacenters: Sequence[str]) -> Place:
    """What the path means on a server with these datacenters, of which the first has the outputs of jobs."""
    parts = normal(text)
    if not parts or parts[0] != ROOT:
        raise InvalidError(f"{text!r} is not a path of the PFS: those begin with /{ROOT}/", field="path")
    if parts[1:2] == (PUBLIC,):
        parts = (ROOT, datacenters[0], *parts[1:])
    if len(parts) > 1:
        parts = (ROOT, datacenter(parts[1], datacenters, typed=f"{text!r}: "), *parts[2:])
    return _placed(parts, first=datacenters[0])


def datacenter(name: str, datacenters: Sequence[str], *, typed: str = "") -> str:
    """The datacenter of this name; any name means the only one."""
    if name in datacenters:
        return name
    if len(datacenters) == 1:
        return datacenters[0]
    known = ", ".join(datacenters)
    raise NotFoundError(f"{typed}there is no datacenter {name!r}: this server has {known}", field="datacenter")


def alias(name: str, datacenters: Sequence[str]) -> str:
    """The name, if it is not a datacenter's own and can be a folder below /pfs; else ""."""
    return name if name not in (*datacenters, PUBLIC) and _ALIAS.fullmatch(name) else ""


def renamed(name: str, datacenters: Sequence[str]) -> str:
    """The note for a user whose name of the only datacenter is not the server's; "" if it is."""
    if name in datacenters:
        return ""
    only = datacenters[0]
    return f"this server has one datacenter, {only}: {name!r} is taken for it, and /{ROOT}/{name} for /{ROOT}/{only}"


def normal(text: str) -> tuple[str, ...]:
    """The parts of an absolute path, without empty ones, `.` and `..`; hostile and odd forms are refused."""
    if not text.startswith("/"):
        raise InvalidError(f"path {text!r} must begin with /{ROOT}/", field="path")
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    if parts:
        paths.check_relative("/".join(parts))
    return tuple(parts)


def check(place: Place, who: Who, access: Access) -> None:
    """Raise unless the caller may do this there."""
    if place.area in (Area.HOME, Area.OUTPUT) and place.owner != who.user:
        raise ForbiddenError(f"{place.path} is not yours, {who.user}: your files are below {_own(place, who)}")
    if place.area is Area.SHARED:
        _check_shared(place, who, access)
    if access is Access.READ:
        return
    if place.area is Area.ABOVE or (not place.below and place.area is not Area.OUTPUT):
        raise ForbiddenError(f"{place.path} itself cannot be changed: name something in {_own(place, who)}")
    if place.area is Area.OUTPUT:
        _check_output(place, access)
    if place.area is Area.PUBLIC and not who.admin:
        raise ForbiddenError(
            f"{place.path} can only be read: public data supports only ls or stat command and cp from it; "
            "an operator fills it"
        )


def _check_shared(place: Place, who: Who, access: Access) -> None:
    writable = who.shared.get((place.datacenter, place.folder))
    if writable is None:
        # The same words whether there is none or it is not for them: its name is not theirs to know.
        raise NotFoundError(
            f"{place.path}: there is no folder {place.folder!r} that is shared with {who.user} in {place.datacenter}: "
            f"`paddlecloud ls /{ROOT}/{place.datacenter}/{SHARED}` lists those that are",
            field="path",
        )
    if access is Access.READ:
        return
    if not place.below:
        raise ForbiddenError(f"{place.path} itself cannot be changed: name something in it")
    if not writable:
        raise ForbiddenError(
            f"{place.path} can only be read by {who.user}: an operator may let a group of theirs write "
            f"(paddlecloud share grant {place.folder} GROUP --write)"
        )


def _check_output(place: Place, access: Access) -> None:
    job, _, inside = place.below.partition("/")
    if access is not Access.REMOVE:
        raise ForbiddenError(f"{place.path} is written by jobs alone: copy what you want to change")
    if not job:
        raise ForbiddenError(f"{place.path} itself cannot be removed: name the folder of a job in it that has ended")
    if inside:
        raise ForbiddenError(
            f"{place.path} is a part of what {job} left, which goes as a whole: paddlecloud rm -r {place.top}/{job}"
        )


def _placed(parts: tuple[str, ...], *, first: str) -> Place:
    datacenter = parts[1] if len(parts) > 1 else ""
    if parts[2:3] == (PUBLIC,):
        return Place(area=Area.PUBLIC, datacenter=datacenter, below="/".join(parts[3:]), parts=parts)
    if len(parts) <= 2 or parts[2:] in ((HOME,), (SHARED,)):
        return Place(area=Area.ABOVE, datacenter=datacenter, parts=parts)
    if parts[2] == SHARED:
        return Place(area=Area.SHARED, datacenter=datacenter, folder=parts[3], below="/".join(parts[4:]), parts=parts)
    if parts[2] != HOME:
        raise NotFoundError(
            f"/{'/'.join(parts)}: there is nothing called {parts[2]!r} in {datacenter}: only {HOME}, {PUBLIC} and "
            f"{SHARED}",
            field="path",
        )
    owner, below = parts[3], parts[4:]
    if datacenter == first and below[:1] == (OUTPUT,):
        return Place(area=Area.OUTPUT, datacenter=datacenter, owner=owner, below="/".join(below[1:]), parts=parts)
    return Place(area=Area.HOME, datacenter=datacenter, owner=owner, below="/".join(below), parts=parts)


def _own(place: Place, who: Who) -> str:
    return home(place.datacenter, who.user) if place.datacenter else f"/{ROOT}/…/{HOME}/{who.user}"
