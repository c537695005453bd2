"""The prerequisites of OpenPAI's second protocol: images, scripts, outputs and data that task roles name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai.reading import Fields, shown
from paddlecloud.model.openpai.template import render

DOCKER_IMAGE = "dockerimage"
TYPES = (DOCKER_IMAGE, "script", "output", "data")
CMD = "com.microsoft.pai.runtimeplugin.cmd"
_STARTS, _SUCCEEDS = "taskStarts", "taskSucceeds"
_MOST = 300  # each may require each, through all others


class Prerequisite(Struct, frozen=True, kw_only=True):
    name: str
    type: str
    plain: dict[str, Any]  # what templates see of it
    requires: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    forgiving: bool = False


class Prerequisites:
    def __init__(self, found: Sequence[Fields], warnings: list[str]) -> None:
        self._all: dict[tuple[str, str], Prerequisite] = {}
        if len(found) > _MOST:
            raise InvalidError(f"the job has {len(found)} prerequisites; {_MOST} is the most", field="prerequisites")
        for fields in found:
            one = _read(fields, warnings)
            if (one.type, one.name) in self._all:
                raise InvalidError(f"Duplicate {one.type} prerequisite {one.name}.", field=fields.place("name"))
            self._all[one.type, one.name] = one
        for one in self._all.values():
            for name in one.requires:
                self.named(name, "prerequisites")

    def find(self, kind: str, name: str) -> Prerequisite:
        found = self._all.get((kind, name))
        if found is None:
            raise InvalidError(f"Prerequisite {name} does not exist.", field="prerequisites")
        return found

    def named(self, name: str, field: str) -> list[Prerequisite]:
        """Those of a name, whatever their type."""
        found = [one for one in self._all.values() if one.name == name]
        if not found:
            raise InvalidError(f"Prerequisite {name} does not exist.", field=field)
        return found

    def image(self, name: str) -> str:
        return str(self.find(DOCKER_IMAGE, name).plain["uri"])

    def needed(self, wanted: Sequence[Prerequisite]) -> list[Prerequisite]:
        """These and all that they require, each after what it requires, and once."""
        order: list[Prerequisite] = []
        for one in wanted:
            self._follow(one, order, [])
        return order

    def _follow(self, one: Prerequisite, order: list[Prerequisite], through: list[str]) -> None:
        if one in order:
            return
        if one.name in through:
            raise InvalidError(
                f"prerequisites require each other: {' -> '.join([*through, one.name])}"[:400], field="prerequisites"
            )
        for inner in self._required(one):
            self._follow(inner, order, [*through, one.name])
        order.append(one)

    def _required(self, one: Prerequisite) -> Iterator[Prerequisite]:
        for name in one.requires:
            yield from self.named(name, "prerequisites")


def read_base(fields: Fields) -> dict[str, Any]:
    """What every part of the protocol may say of itself; templates see it."""
    version = fields.take("protocolVersion")
    if version is not None and (version not in (2, "2") or isinstance(version, bool)):
        place = fields.place("protocolVersion")
        raise InvalidError(f"{place} must be 2, not {shown(version)}", field=place)
    found = {name: fields.take(name) for name in ("version", "contributor", "description") if fields.has(name)}
    for name, said in found.items():
        if isinstance(said, (dict, list)):
            raise fields.wrong(name, "text", said)
    return found


def _read(fields: Fields, warnings: list[str]) -> Prerequisite:
    name = fields.text("name")
    base = read_base(fields)
    kind = fields.text("type")
    if kind not in TYPES:
        place = fields.place("type")
        raise InvalidError(f"{place} {shown(kind)} is none of {', '.join(TYPES)}", field=place)
    if kind == DOCKER_IMAGE:
        return _image(fields, name, base, warnings)
    uri = _uri(fields, kind)
    plugin = fields.text("plugin", "")
    requires = tuple(fields.texts("require"))
    forgiving = fields.text("failurePolicy", "fail") == "ignore"
    before, after = _callbacks(fields)
    if plugin and plugin != CMD:
        warnings.append(f"{fields.place('plugin')} {shown(plugin)} is not known here and does nothing")
        before = after = ()
    others = {other: fields.take(other) for other in fields}
    return Prerequisite(
        name=name,
        type=kind,
        plain={**others, **base, "name": name, "uri": uri},
        requires=requires,
        before=before,
        after=after,
        forgiving=forgiving,
    )


def _image(fields: Fields, name: str, base: dict[str, Any], warnings: list[str]) -> Prerequisite:
    uri = fields.text("uri")
    auth = fields.fields("auth")
    if auth is not None:
        password = auth.text("password", "")
        for part in ("username", "registryuri"):
            auth.text(part, "")
        auth.done_with_notes(warnings)
        warnings.append(
            f"{auth.where} is not used: an image's registry is named by a secret of yours (paddlecloud registry)"
        )
        if password and render(password, {}) == password and "<%" not in password:
            warnings.append(f"{auth.where}.password stands in the open: name it in secrets, and write <% $secrets.… %>")
    fields.done()
    return Prerequisite(name=name, type=DOCKER_IMAGE, plain={**base, "name": name, "uri": uri})


def _uri(fields: Fields, kind: str) -> object:
    value = fields.take("uri")
    if kind == "data" and isinstance(value, list):
        for number, one in enumerate(value):
            if not isinstance(one, str):
                place = f"{fields.place('uri')}[{number}]"
                raise InvalidError(f"{place} must be text", field=place)
        return value
    if value is not None and not isinstance(value, str):
        raise fields.wrong("uri", "text or, of data, a list of texts", value)
    return "" if value is None else value


def _callbacks(fields: Fields) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What runs before a task's commands, and what after they have succeeded."""
    before: list[str] = []
    after: list[str] = []
    for one in fields.each("callbacks"):
        event = one.text("event")
        commands = one.texts("commands")
        one.done()
        if event not in (_STARTS, _SUCCEEDS):
            place = one.place("event")
            raise InvalidError(f"{place} {shown(event)} is neither {_STARTS} nor {_SUCCEEDS}", field=place)
        (before if event == _STARTS else after).extend(commands)
    return tuple(before), tuple(after)
