"""The config files of older clients as their users left them: seed 002's client.conf, which `gen_token` writes too, and
seed 001's YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddlecloud.model.errors import ConfigError, InvalidError
from paddlecloud.sdk import privatefile

Sections = Mapping[str, Mapping[str, str]]

_SECTION = re.compile(r"\[([^\]]+)\]\s*:?\s*(//.*)?")
_SETTING = re.compile(r"(?P<name>[^:=]+?)\s*[:=]\s*(?P<value>.*)")
_KEY = ("ak", "sk")
_COMMENTS = ("//", "#", ";")
_COMMENT_BEHIND = re.compile(r"(?:^|\s)(//.*)")
_PLACEHOLDER = re.compile(r"[xX*]{3,}|<.*>|\$\{.*\}")


def read_client_conf(file: Path) -> Sections:
    """Sections of a client.conf, keys in lower case; what is only a comment or a placeholder counts as empty."""
    return {
        section: {name: "" if _PLACEHOLDER.fullmatch(value) else value for name, value in values.items()}
        for section, values in _as_written(file).items()
    }


def why_no_key(file: Path) -> str:
    """What keeps [main] of a client.conf from having an access key; "": nothing does."""
    main = _as_written(file).get("main", {})
    missing = [f"{name} is missing" for name in _KEY if not main.get(name)]
    unfilled = [f"{name} is still a placeholder" for name in _KEY if _PLACEHOLDER.fullmatch(main.get(name, ""))]
    told = " and ".join([*missing, *unfilled])
    return told and f"in [main] {told}"


def _as_written(file: Path) -> Sections:
    """Sections with their values, placeholders and all.

    Taken as the seeds print it: `//` comments before and between sections, `[bos]:`, `ak: // your key`,
    `name: value` beside `name = value`, and lines that were indented by being copied from a page.
    """
    sections: dict[str, dict[str, str]] = {}
    current = sections.setdefault("", {})
    for number, line in enumerate(file.read_text("utf-8-sig", errors="replace").splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith(_COMMENTS):
            continue
        if section := _SECTION.fullmatch(line):
            current = sections.setdefault(section[1].strip().lower(), {})
        elif setting := _SETTING.fullmatch(line):
            current[setting["name"].strip().lower()] = _value(setting["value"])
        else:
            raise ConfigError(f"{file}, line {number}: {line!r} is neither [section] nor name = value; correct it")
    return sections


def write_client_conf(file: Path, values: Sections) -> None:
    """Set these values in a client.conf and leave every other line as it is, comments and all."""
    try:
        before = file.read_bytes()
    except FileNotFoundError:
        before = b""
    # Comments may be in any encoding: what is not UTF-8 goes through unread.
    text = before.decode("utf-8", errors="surrogateescape")
    privatefile.write(file, changed(text, values).encode("utf-8", errors="surrogateescape"))


def changed(text: str, values: Sections) -> str:
    """The text of a client.conf with these values set where they stand, else at the end of their section."""
    lines = [line if line.endswith("\n") else f"{line}\n" for line in text.splitlines(keepends=True)]
    missing = {section: dict(named) for section, named in values.items()}
    section, ends = "", dict[str, int]()
    for number, line in enumerate(lines):
        stripped = line.strip().lstrip("\ufeff")
        if found := _SECTION.fullmatch(stripped):
            section = found[1].strip().lower()
        elif not stripped.startswith(_COMMENTS) and (found := _SETTING.fullmatch(stripped)):
            name = found["name"].strip().lower()
            if name in values.get(section, {}):
                lines[number] = _set(line, found["value"], values[section][name])
                missing[section].pop(name, None)
        if stripped:
            ends[section] = number + 1
    for section in sorted(missing.keys() & ends.keys(), key=ends.__getitem__, reverse=True):
        lines[ends[section] : ends[section]] = _lines(missing.pop(section))
    for section, named in missing.items():
        lines += [*(["\n"] if lines else []), f"[{section}]\n", *_lines(named)]
    return "".join(lines)


def _set(line: str, before: str, value: str) -> str:
    """A line `name = before` with another value; its indentation, its end and a comment in it stay."""
    body = line.rstrip()
    comment = _COMMENT_BEHIND.search(before)
    return f"{body.removesuffix(before).rstrip()} {value}{' ' + comment[1] if comment else ''}{line[len(body) :]}"


def _lines(named: Mapping[str, str]) -> list[str]:
    return [f"{name} = {value}\n" for name, value in named.items()]


def read_paddle_config(file: Path) -> Mapping[str, str]:
    """The current datacenter of a ~/.paddle/config: its name as `datacenter`, `server`, `user` and `password`."""
    from paddlecloud import yamltext

    try:
        whole: Any = yamltext.read(file.read_text("utf-8"))
    except (InvalidError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not YAML: {error}") from None
    centers = whole.get("datacenters") if isinstance(whole, dict) else None
    if not isinstance(centers, list) or not all(isinstance(center, dict) for center in centers):
        raise ConfigError(f"{file} has no list of `datacenters`; write one with name, username, password and endpoint")
    by_name = {str(center.get("name")): center for center in centers}
    current = str(whole.get("current-datacenter", next(iter(by_name), "")))
    if current not in by_name:
        raise ConfigError(f"{file}: current-datacenter {current!r} is not among {', '.join(by_name) or 'its none'}")
    center = by_name[current]
    named = {"server": center.get("endpoint"), "user": center.get("username"), "password": center.get("password")}
    # `[your user name]`, as the seed prints it, is a list to YAML.
    given = {name: str(value) for name, value in named.items() if isinstance(value, str | int) and value != ""}
    return {**given, "datacenter": current}


def _value(text: str) -> str:
    return _COMMENT_BEHIND.sub("", text).strip().strip("\"'")
