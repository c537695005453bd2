"""Reads YAML by the core schema of YAML 1.2, for command and server alike: `yes`, `on` and 12:30:45 are texts.

Invariant: text, depth and what aliases and merges grow to are bounded before a value is made.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from paddlecloud.model.errors import InvalidError

MOST_CHARACTERS = 1_000_000
_LEVELS = 60
_NODES = 20_000
_CHARACTERS = 4 * MOST_CHARACTERS
_TRUE_FALSE = re.compile(r"true|True|TRUE|false|False|FALSE")
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,20}")
_NUMBER = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NOTHING = re.compile(r"~|null|Null|NULL|")


class _Loader(yaml.SafeLoader):
    """PyYAML's own, in Python: what it refuses it says with the line."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.left = getattr(self, "left", _NODES) - 1
        self.depth = getattr(self, "depth", 0) + 1
        if self.left < 0:
            raise InvalidError(f"the YAML has more than {_NODES} values")
        if self.depth > _LEVELS:
            raise InvalidError(f"the YAML is nested more than {_LEVELS} levels deep")
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


for _tag, _pattern, _first in (
    ("bool", _TRUE_FALSE, list("tTfF")),
    ("int", _WHOLE, list("-+0123456789")),
    ("float", _NUMBER, list("-+0123456789.")),
    ("null", _NOTHING, ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern.pattern})$"), _first)
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<$"), ["<"])


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0 if text.startswith(("0x", "0o")) else 10)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


def read(text: str) -> object:
    """The value that a text stands for; InvalidError says what is wrong with it, and where."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidError(f"the YAML is longer than {MOST_CHARACTERS} characters")
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _Growth().of(node)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise InvalidError(f"invalid YAML{_words(error)}") from None
    except (RecursionError, ValueError, OverflowError, TypeError, AttributeError, KeyError):
        raise InvalidError("invalid YAML: a value in it cannot be read") from None
    finally:
        if loader is not None:
            loader.dispose()


class _Growth:
    """How many values and characters a node stands for, and how deep they are, once its aliases are followed."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int, int] | None] = {}  # None: it is being looked into

    def of(self, node: yaml.Node) -> tuple[int, int, int]:
        if id(node) in self._known:
            known = self._known[id(node)]
            if known is None:
                raise InvalidError("an alias in the YAML stands within what it names")
            return known
        self._known[id(node)] = None
        values, characters, levels = 1, 0, 0
        if isinstance(node, yaml.ScalarNode):
            characters = len(node.value)
        for inner in _inner(node):
            more = self.of(inner)
            values, characters, levels = values + more[0], characters + more[1], max(levels, more[2])
            if values > _NODES or characters > _CHARACTERS or levels >= _LEVELS:
                raise InvalidError(
                    f"the YAML has more than {_NODES} values, {_CHARACTERS} characters or {_LEVELS} levels, aliases "
                    "followed"
                )
        self._known[id(node)] = values, characters, levels + 1
        return values, characters, levels + 1


def _inner(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [one for pair in node.value for one in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def replaced(text: str, key: str, by: str) -> str:
    """The text with the value of a key at its top replaced, and nothing else changed.

    Where that cannot be, since what is taken out is used elsewhere too, the whole is written anew.
    """
    whole = read(text)
    if not isinstance(whole, dict) or key not in whole:
        return text
    changed = {**whole, key: by}
    for start, end in reversed(_places(text, key)):
        # A block ends where the next begins, with the line breaks and comments between them.
        inner = text[start:end]
        text = f'{text[:start]}: "{by}"{inner[len(inner.rstrip()) :] or ""}{text[end:]}'
    try:
        if read(text) == changed:
            return text
    except InvalidError:
        pass
    return dump(changed)


def dump(value: object) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes nothing by reference: who reads a config again should not have to look for what is meant."""

    def ignore_aliases(self, _: object) -> bool:
        return True


def _places(text: str, key: str) -> list[tuple[int, int]]:
    """From the end of the key, since a comment may stand between it and its value."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    if not isinstance(node, yaml.MappingNode):
        return []
    return [
        (name.end_mark.index, inner.end_mark.index)
        for name, inner in node.value
        if isinstance(name, yaml.ScalarNode) and name.value == key
    ]


def _words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).split("\n")[0]
    return f" at line {mark.line + 1}: {problem}" if mark is not None else f": {str(problem)[:200]}"
