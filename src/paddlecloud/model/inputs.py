"""The inputs of a job: what a source may be, and where in the working directory its files may be put."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from paddlecloud.model import paths, pfs
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Input

MOST = 50  # of one job
HDFS = "hdfs://"
HERE = "."  # as a target: the working directory itself
_USER_BYTES = 200


class HdfsPath(Struct, frozen=True, kw_only=True):
    """`hdfs://<name>/<path>`: the name is that of a file system, host and port, as Hadoop's fs.defaultFS has it."""

    name: str
    path: str  # below the root, without a slash at its beginning; "": the root

    def __str__(self) -> str:
        return f"{HDFS}{self.name}/{self.path}"


def is_hdfs(source: str) -> bool:
    return source.startswith(HDFS)


def parse_hdfs(source: str, field: str = "source") -> HdfsPath:
    name, _, path = source.removeprefix(HDFS).partition("/")
    if not name or not name.isprintable() or set(name) & set(" @?#\\"):
        raise InvalidError(
            f"{field} {source[:200]!r} names no file system: write hdfs://<host>:<port>/<path>", field=field
        )
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return HdfsPath(name=name, path=paths.check_relative("/".join(parts), field) if parts else "")


def base_name(source: str) -> str:
    """What the last part of a source is called."""
    path = parse_hdfs(source).path if is_hdfs(source) else source
    return path.rstrip("/").rpartition("/")[2]


def shipped_name(one: Input) -> str:
    """What an input is called where it is brought to, whatever becomes of it there."""
    return base_name(one.source) or "files"


def default_target(source: str) -> str:
    """Where what comes from a source goes if nobody says: to its own name."""
    return base_name(source) or HERE


def normal(inputs: Sequence[Input]) -> tuple[Input, ...]:
    """The inputs with each path in its one form; InvalidError says which of them cannot be, and why."""
    if len(inputs) > MOST:
        raise InvalidError(f"the job has {len(inputs)} inputs; {MOST} is the most: put files into one folder")
    found = tuple(_normal(one, f"inputs[{number}]") for number, one in enumerate(inputs))
    targets = [(f"inputs[{number}].target", one.target) for number, one in enumerate(found)]
    targets += [
        (f"inputs[{number}].alias", f"{one.target.rpartition('/')[0]}/{one.alias}".lstrip("/"))
        for number, one in enumerate(found)
        if one.alias
    ]
    for at, (field, target) in enumerate(targets):
        for other, before in targets[:at]:
            if _overlap(target, before):
                raise InvalidError(
                    f"{field} (to) {target!r} and {other} {before!r} are in each other's way: give each its own folder",
                    field=field,
                )
    for number, one in enumerate(found):
        _check_list(one, f"inputs[{number}].list", targets)
    return found


def _normal(one: Input, field: str) -> Input:
    source = _source(one.source, f"{field}.source")
    user = _user(one, f"{field}.user")
    return replace(
        one,
        source=source,
        target=_relative(one.target, f"{field}.target", "to") or HERE,
        list=_relative(one.list, f"{field}.list", "list") if one.list else "",
        user=user,
        alias=_alias(one, f"{field}.alias"),
    )


def _alias(one: Input, field: str) -> str:
    if not one.alias:
        return ""
    if one.target in ("", HERE) or "/" in one.alias or one.alias in (".", "..", base_name(one.target)):
        raise InvalidError(f"{field} {one.alias[:80]!r} is no other name of {one.target[:80]!r}", field=field)
    return paths.check_relative(one.alias, field)


def _source(source: str, field: str) -> str:
    if is_hdfs(source):
        return str(parse_hdfs(source, field))
    if not pfs.is_pfs(source):
        raise InvalidError(
            f"{field} (from) {source[:200]!r} is nothing that an input can come from: name a file or folder as "
            "/pfs/<datacenter>/… or hdfs://<host>:<port>/…",
            field=field,
        )
    try:
        return "/" + "/".join(pfs.normal(source))
    except InvalidError as error:
        raise InvalidError(f"{field} (from): {error.message}", field=field) from None


def _user(one: Input, field: str) -> str:
    if one.user and not is_hdfs(one.source):
        raise InvalidError(f"{field} is for HDFS: files of the PFS are read as yourself, so leave it out", field=field)
    if not one.user.isprintable() or len(one.user.encode(errors="replace")) > _USER_BYTES or "," in one.user:
        raise InvalidError(f"{field} {one.user[:40]!r} is no name of a user", field=field)
    return one.user


def _relative(path: str, field: str, word: str) -> str:
    """A path below the working directory; "" is the directory itself."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise InvalidError(
            f"{field} ({word}) {path[:200]!r} leads out of the working directory: write it relative to that",
            field=field,
        )
    return paths.check_relative("/".join(parts), field) if parts else ""


def _check_list(one: Input, field: str, targets: Sequence[tuple[str, str]]) -> None:
    for other, target in targets if one.list else ():
        if target != HERE and _overlap(one.list, target):
            raise InvalidError(f"{field} {one.list!r} is in the way of {other} {target!r}: name another", field=field)


def _overlap(one: str, other: str) -> bool:
    return HERE in (one, other) or f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
