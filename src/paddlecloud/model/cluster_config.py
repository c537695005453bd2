"""The call `cluster_config(…)` in a config file of cluster_train (seed 003), read and never run.

Its arguments are texts and flags, names that the file sets once to such, and texts put together by `+`. A file in
Python 2 is read by its brackets: all but that call, and lines that set a name, is taken for blank. Of `fs_ugi`, which
is `user,password`, the user alone leaves this file.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.wire import nearest

CALL = "cluster_config"
V1 = "paddle.trainer_config_helpers"
LARGEST_BYTES = 1024 * 1024
_ARGUMENTS: Mapping[str, type] = {"fs_name": str, "fs_ugi": str, "work_dir": str, "has_meta_data": bool, "entry": str}
_EXAMPLE = f'{CALL}(fs_name="hdfs://name-node:54310", fs_ugi="user,password", work_dir="/path/of/the/data/")'
_STEPS = 200  # of names and texts in one value, which may name each other
_TOKEN = re.compile(
    r"#[^\n]*"
    r"|'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
    r"|(?P<name>[^\W\d]\w*)|(?P<open>[(\[{])|(?P<close>[)\]}])|\w+|[^\s\w]",
    re.DOTALL,
)
_SETS_A_NAME = re.compile(r"^[^\W\d]\w*[ \t]*=[^=\n][^\n]*", re.MULTILINE)
_IMPORTS_V1 = re.compile(r"^[ \t]*(?:from|import)[ \t]+paddle\.trainer", re.MULTILINE)
_PASSWORD = re.compile(rb"""(fs_ugi["']?[\s#]*[=:][\s#]*[uUrRbB]*(["'])[^"',\r\n]*,)[^"'\r\n]*(?=\2)""")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class ClusterConfig(Struct, frozen=True, kw_only=True):
    """What a config says of its job, and what `python <config>` would need."""

    work_dir: str
    fs_name: str = ""
    user: str = ""  # of fs_ugi
    has_meta_data: bool = False
    entry: str = ""
    is_v1: bool = False  # it imports PaddlePaddle's v1 helpers
    defines_call: bool = True  # run by Python, it would know what cluster_config is


def read(source: bytes, name: str) -> ClusterConfig:
    """What the file `name` says; InvalidError names its line and the argument."""
    file = _File(source, name)
    given = {argument: _checked(file, argument, node) for argument, node in file.arguments().items()}
    if not given.get("work_dir"):
        raise InvalidError(f"{file.at(file.call)}: work_dir is missing: write {_EXAMPLE}", field="config")
    return ClusterConfig(
        work_dir=given["work_dir"],
        fs_name=given.get("fs_name", ""),
        user=given.get("fs_ugi", "").partition(",")[0].strip(),
        has_meta_data=given.get("has_meta_data", False),
        entry=given.get("entry", ""),
        is_v1=file.is_v1,
        defines_call=file.defines_call,
    )


def without_password(source: bytes) -> bytes:
    """The file with nothing behind the comma of fs_ugi, of calls that are commented out too."""
    try:
        file = _File(source, "")
        node = file.arguments().get("fs_ugi")
        pieces = [] if node is None else file.pieces(node)
    except (InvalidError, _NotConstantError):
        return _PASSWORD.sub(rb"\1", source)
    changed: dict[tuple[int, int], tuple[ast.Constant, str]] = {}
    behind_comma = False
    for piece in pieces:
        before, comma, _ = str(piece.value).partition(",")
        if behind_comma or comma:
            changed[piece.lineno, piece.col_offset] = piece, "" if behind_comma else before + comma
        behind_comma = behind_comma or bool(comma)
    return _PASSWORD.sub(rb"\1", file.with_texts([changed[place] for place in sorted(changed, reverse=True)]))


class _File:
    """A config as a tree, whatever its encoding and its Python."""

    def __init__(self, source: bytes, name: str) -> None:
        if len(source) > LARGEST_BYTES:
            raise InvalidError(f"{name} has {len(source)} bytes, which is no config", field="config")
        self.name = name
        self._encoding, self._text = _decoded(source)
        tree = _parsed(self._text)
        self._tree = tree if tree is not None else _parsed(self._bare())
        if self._tree is None:
            raise InvalidError(f"{name} cannot be read: its {CALL}(…) is not Python", field="config")
        self.call = self._one_call(self._tree)
        self._names = dict(_names(self._tree, self.call.lineno))
        imports = {name for node in ast.walk(self._tree) for name in _imported(node)}
        self.is_v1 = any(module.startswith("paddle.trainer") for module in imports) or (
            tree is None and _IMPORTS_V1.search(self._text) is not None
        )
        self.defines_call = (
            tree is None or isinstance(self.call.func, ast.Attribute) or bool({CALL, "*"} & set(_bound(self._tree)))
        )

    def at(self, node: ast.expr) -> str:
        return f"{self.name}, line {node.lineno}"

    def arguments(self) -> dict[str, ast.expr]:
        """What is given for each argument."""
        if len(self.call.args) > len(_ARGUMENTS) or any(isinstance(node, ast.Starred) for node in self.call.args):
            raise InvalidError(f"{self.at(self.call)}: {CALL} takes its arguments by name: {_EXAMPLE}", field="config")
        given = dict(zip(_ARGUMENTS, self.call.args, strict=False))
        for keyword in self.call.keywords:
            if keyword.arg is None or keyword.arg not in _ARGUMENTS:
                what = f"{keyword.arg} is no argument of {CALL}" if keyword.arg else "** is not read"
                hint = nearest(keyword.arg or "", tuple(_ARGUMENTS))
                raise InvalidError(f"{self.at(keyword.value)}: {what}{hint}", field="config")
            given[keyword.arg] = keyword.value
        return given

    def pieces(self, node: ast.expr) -> list[ast.Constant]:
        """The constants that a value is put together from; none where it is not."""
        steps = 0

        def found(part: ast.expr) -> Iterator[ast.Constant]:
            nonlocal steps
            steps += 1
            if isinstance(part, ast.Constant) and steps <= _STEPS:
                yield part
            elif isinstance(part, ast.Name) and part.id in self._names and steps <= _STEPS:
                yield from found(self._names[part.id])
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add) and steps <= _STEPS:
                yield from found(part.left)
                yield from found(part.right)
            else:
                raise _NotConstantError(part)

        return list(found(node))

    def with_texts(self, changed: list[tuple[ast.Constant, str]]) -> bytes:
        """The file with other texts in place of these constants, which are told from the last to the first."""
        lines = [line.encode() for line in _LINE.findall(self._text)]
        for node, text in changed:
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            begin, end = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
            breaks = b"\n" * (last - first)  # other lines keep their numbers; only within brackets are there any
            lines[first : last + 1] = [begin + repr(text).encode() + breaks + end]
            lines[first + 1 : first + 1] = [b""] * (last - first)
        return b"".join(lines).decode().encode(self._encoding)

    def _one_call(self, tree: ast.Module) -> ast.Call:
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_ours(node.func)]
        if len(calls) == 1:
            return calls[0]
        if calls:
            lines = " and ".join(str(call.lineno) for call in calls)
            raise InvalidError(f"{self.name} calls {CALL} in lines {lines}: leave one of them", field="config")
        raise InvalidError(
            f"{self.name} does not say where its data is: add {_EXAMPLE}, or work_dir='/pfs/…' alone", field="config"
        )

    def _bare(self) -> str:
        """The text with blanks for all but the calls and the lines that set a name, each where it stands."""
        kept = [" " if letter not in "\r\n" else letter for letter in self._text]
        for found in _SETS_A_NAME.finditer(self._text):
            if _parsed(found[0]) is not None:
                kept[found.start() : found.end()] = found[0]
        for start, end in _calls(self._text):
            kept[start:end] = self._text[start:end]
            at_line = self._text.rfind("\n", 0, start) + 1
            if start > at_line:  # else it would be indented for no reason
                kept[at_line:start], kept[end - 1] = "(" + " " * (start - at_line - 1), "))"
        return "".join(kept)


class _NotConstantError(Exception):
    def __init__(self, node: ast.expr) -> None:
        self.node = node


def _checked(file: _File, argument: str, node: ast.expr) -> Any:
    kind = _ARGUMENTS[argument]
    try:
        found = [piece.value for piece in file.pieces(node)]
    except _NotConstantError as error:
        shown = "" if argument == "fs_ugi" else f" ({ast.unparse(error.node)[:60]})"
        raise InvalidError(
            f"{file.at(node)}: {argument} is computed{shown}: the file is read and not run, so write it as a text, "
            "a name that is set once to a text above, or a sum of these",
            field="config",
        ) from None
    if kind is bool and len(found) == 1 and found[0] in (True, False):
        return bool(found[0])
    if kind is str and len(texts := [part for part in found if isinstance(part, str)]) == len(found):
        return "".join(texts)
    if kind is str and found == [None]:
        return ""
    wanted = "True or False" if kind is bool else "a text in quotes"
    raise InvalidError(f"{file.at(node)}: {argument} must be {wanted}", field="config")


def _decoded(source: bytes) -> tuple[str, str]:
    """The encoding, by the first lines of the file, and its text."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return encoding, source.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        return "latin-1", source.decode("latin-1")


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes, which are not ours to judge
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _calls(text: str) -> Iterator[tuple[int, int]]:
    """Where calls of ours begin and end."""
    start, depth, before, last = -1, 0, "", ""
    for found in _TOKEN.finditer(text):
        word = found[0]
        if start < 0 and found["open"] and last == CALL and before != "def":
            start, depth = text.rindex(CALL, 0, found.start()), 0
        if start >= 0:
            depth += bool(found["open"]) - bool(found["close"])
            if depth == 0 and found["close"]:
                yield start, found.end()
                start = -1
        if not word.startswith("#"):
            before, last = last, word


def _is_ours(function: ast.expr) -> bool:
    return (isinstance(function, ast.Name) and function.id == CALL) or (
        isinstance(function, ast.Attribute) and function.attr == CALL
    )


def _names(tree: ast.Module, line: int) -> Iterator[tuple[str, ast.expr]]:
    """Names that the file sets once, at its top level and above this line, and what to."""
    times = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or node.lineno >= line:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and times[target.id] == 1:
                yield target.id, node.value


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _bound(tree: ast.Module) -> Iterator[str]:
    """Names that running the file would give a meaning; `*` where that cannot be told."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
