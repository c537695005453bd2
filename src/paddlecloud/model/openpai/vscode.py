"""What OpenPAI's VS Code client does with a job in JSON before it sends it: pure, for our own command to do the same.

It reads `.vscode/settings.json`, gives the job a name of its own, replaces the first `$PAI_JOB_NAME` and
`$PAI_USER_NAME` of each path and command, and sends the files that its globs name to the job's codeDir.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai.submitted import FS_URI

# What a program makes again, and what is nobody's to send.
LEFT_OUT = ("**/.git/**", "**/.vscode/**", "**/__pycache__/**", "**/node_modules/**", "**/.venv/**", "**/.DS_Store")
_UPLOAD, _NAMES = "pai.job.upload", "pai.job.generateJobName.enabled"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_GLOB = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}|.", re.DOTALL)


class Settings(Struct, frozen=True, kw_only=True):
    upload: bool = True
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    generate_name: bool = True

    def sends(self, path: str) -> bool:
        """Whether a file goes along, by its path from the folder of the job."""
        left_out = [*self.exclude, *LEFT_OUT]
        return any(matches(path, one) for one in self.include) and not any(matches(path, one) for one in left_out)


def read_settings(text: str) -> Settings:
    """The settings of a `.vscode/settings.json`, in which there may be comments; what it does not say is as ever."""
    try:
        plain = json.loads(_TOKEN.sub(lambda found: found[0] if found[0].startswith('"') else "", text) or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidError(f".vscode/settings.json is not JSON: {error}") from None
    if not isinstance(plain, dict):
        raise InvalidError(".vscode/settings.json is no mapping")
    usual = Settings()
    include = _globs(plain, f"{_UPLOAD}.include")
    exclude = _globs(plain, f"{_UPLOAD}.exclude")
    return Settings(
        upload=_truth(plain, f"{_UPLOAD}.enabled", usual.upload),
        include=usual.include if include is None else include,
        exclude=usual.exclude if exclude is None else exclude,
        generate_name=_truth(plain, _NAMES, usual.generate_name),
    )


def prepared(value: Mapping[str, Any], *, user: str, name: str) -> dict[str, Any]:
    """The job under a name, with the first of each variable replaced where the client does."""

    def filled(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        return text.replace("$PAI_JOB_NAME", name, 1).replace("$PAI_USER_NAME", user, 1)

    changed = {**value, "jobName": name}
    for key in ("codeDir", "dataDir", "outputDir", "authFile"):
        if key in changed:
            changed[key] = filled(changed[key])
    roles = value.get("taskRoles")
    if isinstance(roles, list):
        changed["taskRoles"] = [
            {**role, "command": filled(role["command"])} if isinstance(role, dict) and "command" in role else role
            for role in roles
        ]
    return changed


def code_path(code_dir: object) -> str:
    """The path in the file system that the code is to be sent to; "": it is elsewhere, and is not sent."""
    if not isinstance(code_dir, str) or not code_dir.startswith(f"{FS_URI}/"):
        return ""
    return code_dir[len(FS_URI) :]


def matches(path: str, glob: str) -> bool:
    """Whether a path is one that a glob of VS Code means: `*` is within a part, `**` is any number of parts."""
    return re.fullmatch(_pattern(glob), path) is not None


def _pattern(glob: str) -> str:
    return "".join(_piece(found[0]) for found in _GLOB.finditer(glob.removeprefix("./")))


def _piece(piece: str) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece == "**":
        return ".*"
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if piece.startswith("{"):
        return f"(?:{'|'.join(_pattern(one) for one in piece[1:-1].split(','))})"
    if piece.startswith("[") and len(piece) > 1:
        inner = piece[1:-1]
        escaped = inner.removeprefix("!").replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
        return f"[{'^' if inner.startswith('!') else ''}{escaped}]"
    return re.escape(piece)


def _truth(plain: Mapping[str, Any], key: str, usual: bool) -> bool:
    value = plain.get(key, usual)
    if not isinstance(value, bool):
        raise InvalidError(f".vscode/settings.json: {key} must be true or false", field=key)
    return value


def _globs(plain: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value: Sequence[Any] | None = plain.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidError(f".vscode/settings.json: {key} must be a list of globs", field=key)
    for one in value:
        try:
            re.compile(_pattern(one))
        except re.error:
            raise InvalidError(f".vscode/settings.json: {key}: {one[:80]!r} is no glob", field=key) from None
    return tuple(value)
