"""The script that a task of OpenPAI's second protocol runs, of its commands and of all that stands around them.

The commands are trimmed and joined by newlines. Where others come before or after them, each group is a shell of its
own, as it was there: a task's commands may `exit 0`, and what follows them still runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai.extras import Plugin
from paddlecloud.model.openpai.prerequisites import Prerequisite, Prerequisites, read_base
from paddlecloud.model.openpai.reading import Fields
from paddlecloud.model.openpai.template import MOST_CHARACTERS, SECRETS, names, render, too_long

REFERRED = ("script", "output", "data")  # what a task role may refer to by a field of that name
Deployment = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # task role -> what comes before and after
_OWN = frozenset({"$parameters", "$secrets", "$script", "$output", "$data"})


class Used(Struct, frozen=True, kw_only=True):
    """The prerequisites that a task role names."""

    place: str
    by_type: Mapping[str, str]
    others: tuple[str, ...]


def read_deployments(found: Sequence[Fields], roles: Sequence[str], warnings: list[str]) -> dict[str, Deployment]:
    deployments: dict[str, Deployment] = {}
    for fields in found:
        name = fields.text("name")
        read_base(fields)
        if name in deployments:
            raise InvalidError(f"Duplicate deployments {name}.", field=fields.place("name"))
        inner = fields.fields("taskRoles")
        deployments[name] = {role: _around(inner, role, roles) for role in inner} if inner is not None else {}
        fields.done_with_notes(warnings)
    return deployments


def _around(fields: Fields, role: str, roles: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    place = fields.place(role[:80])
    if role not in roles:
        raise InvalidError(f"{place}: there is no task role {role[:80]}", field=place)
    inner = fields.fields(role)
    if inner is None:
        return (), ()
    before, after = inner.texts("preCommands"), inner.texts("postCommands")
    inner.done()
    return before, after


class Steps:
    """What the scripts of a job's task roles are made from."""

    def __init__(
        self,
        *,
        parameters: Mapping[str, Any],
        secrets: Mapping[str, Any],
        prerequisites: Prerequisites,
        plugins: Sequence[Plugin],
        warnings: list[str],
    ) -> None:
        self._parameters = parameters
        self._secrets = secrets
        self._prerequisites = prerequisites
        self._plugins = plugins
        self._warnings = warnings
        self._left = MOST_CHARACTERS  # characters for the scripts of all task roles together

    def text(self, role: str, commands: Sequence[str], used: Used) -> str:
        """The script of a task role, in which only secrets are left to be filled in."""
        referred = {kind: self._prerequisites.find(kind, name) for kind, name in used.by_type.items() if name}
        known = {
            "$parameters": self._parameters,
            **{f"${kind}": prerequisite.plain for kind, prerequisite in referred.items()},
        }
        own = _joined(commands)
        if len(own) > self._left:
            raise too_long(MOST_CHARACTERS)
        before, after = self._groups(role, used, referred)
        text = "\n".join([*before, f"(\n{own}\n)", *after]) if before or after else own
        rendered = render(text, known, most=self._left)
        # What is too long once secrets are in it is refused now.
        self._left -= len(render(rendered, {SECRETS: self._secrets}, most=self._left))
        self._tell_unresolved(role, rendered)
        if not own.strip():
            raise InvalidError(f"{used.place}.commands is empty: say what to run", field=f"{used.place}.commands")
        return rendered

    def _groups(self, role: str, used: Used, referred: Mapping[str, Prerequisite]) -> tuple[list[str], list[str]]:
        """What comes before the commands, in order, and what after them, in reverse."""
        field = f"{used.place}.prerequisites"
        named = [one for name in used.others for one in self._prerequisites.named(name, field)]
        needed = self._prerequisites.needed([*referred.values(), *named])
        plugins = [one for one in self._plugins if not one.roles or role in one.roles]
        first: list[Prerequisite | Plugin] = [*needed, *plugins]
        last: list[Prerequisite | Plugin] = [*plugins, *reversed(needed)]
        before = [_group(one.before, one.forgiving) for one in first if one.before]
        after = [_group(one.after, one.forgiving) for one in last if one.after]
        return before, after

    def _tell_unresolved(self, role: str, text: str) -> None:
        """A name that is left stays as it is written, which the shell will not like."""
        secrets = {SECRETS: self._secrets}
        for name in dict.fromkeys(names(text)):
            if name.split(".")[0].split("[")[0] in _OWN and render(f"<%{name}%>", secrets) == f"<%{name}%>":
                self._warnings.append(f"taskRoles.{role}: <% {name[:80]} %> stands for nothing, and stays as it is")


def _joined(commands: Sequence[str]) -> str:
    return "\n".join(command.strip() for command in commands)


def _group(commands: Sequence[str], forgiving: bool) -> str:
    if not forgiving:
        return f"(\n{_joined(commands)}\n)"
    # Beside `||` bash would pass over what fails in the middle of the group, too.
    return f"set +o errexit\n(\nset -o errexit\n{_joined(commands)}\n)\nset -o errexit"
