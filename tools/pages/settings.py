"""docs/reference/settings.md: every setting of the server, from server/settings.py."""

from __future__ import annotations

from itertools import groupby

from paddlecloud.server import config
from tools.pages.markdown import code, document, table

INTRODUCTION = """
One TOML file: what `paddlecloud serve --config FILE` names, else `server.toml` in the data folder, if there is one.
Every setting has a default; an unknown one is refused with the nearest known name. `paddlecloud config --server`
prints the effective ones. Sizes are written `512Mi` or `10GB`, times `00:30:00`, `2h` or a number of seconds.
"""


def page() -> str:
    parts: list[str] = []
    for section, lines in groupby(config.reference(), key=lambda line: line.section):
        parts.append(f"## [{section}]")
        rows = [(code(line.name), code(config.show(line.default)) or "none", line.help) for line in lines]
        parts.append(table(("setting", "default", "what it does"), rows))
    return document("Settings", "src/paddlecloud/server/settings.py", INTRODUCTION, *parts)
