"""Reads the config files of older clients as their users left them: seed 002's client.conf and seed 001's YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from paddlecloud.model.errors import ConfigError

Sections = Mapping[str, Mapping[str, str]]

_SECTION = re.compile(r"\[([^\]]+)\]\s*:?\s*(//.*)?")
_SETTING = re.compile(r"(?P<name>[^:=]+?)\s*[:=]\s*(?P<value>.*)")
_COMMENTS = ("//", "#", ";")
_PLACEHOLDER = re.compile(r"[xX*]{3,}|<.*>|\$\{.*\}")


def read_client_conf(file: Path) -> Sections:
    """Sections of a client.conf, keys in lower case; what is only a comment or a placeholder counts as empty.

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
            current[setting["name"].strip().lower()] = _meant(setting["value"])
        else:
            raise ConfigError(f"{file}, line {number}: {line!r} is neither [section] nor name = value; correct it")
    return sections


def read_paddle_config(file: Path) -> Mapping[str, str]:
    """The current datacenter of a ~/.paddle/config: its `server`, `user` and `password`, as far as given."""
    import yaml

    try:
        whole = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
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
    return {name: str(value) for name, value in named.items() if isinstance(value, str | int) and value != ""}


def _meant(value: str) -> str:
    value = value.strip()
    if value.startswith("//"):
        return ""
    value = re.split(r"\s+//", value, maxsplit=1)[0].strip().strip("\"'")
    return "" if _PLACEHOLDER.fullmatch(value) else value
