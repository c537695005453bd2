"""Addresses of servers as people write them: one, or a list of which the first that answers is taken.

A list is `host:port, host:port`, or a file with one to a line, such as seed 003's local_config.py of receivers.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from paddlecloud.model.errors import ConfigError

_MOST_BYTES = 64 * 1024
_FILES = (".py", ".txt", ".conf")
_BETWEEN = re.compile(r"[\s,;]+")


def server_url(text: str, where: str) -> str:
    """A server's address as we keep it; `where` names the place of a wrong one."""
    text = text.strip().rstrip("/")
    if "://" not in text:
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{where}: server {text!r} is no address; write http://host:port", field="server")
    return text


def server_list(text: str, where: str, beside: Path | None = None) -> tuple[str, ...]:
    """The addresses that a text names, or the file that it names, which may be `beside` the one it is written in."""
    text = text.strip()
    if "://" not in text and ("/" in text or text.endswith(_FILES)):
        file = (beside or Path.cwd()) / os.path.expanduser(text)
        text, where = _read(file, where), str(file)
    lines = [line.partition("#")[0].strip().strip("\"'") for line in re.split(r"[\r\n]", text)]
    words = [word.strip("\"'") for line in lines for word in _BETWEEN.split(line)]
    found = dict.fromkeys(server_url(word, where) for word in words if word)
    if not found:
        raise ConfigError(f"{where} names no server: write one host:port to a line", field="servers")
    return tuple(found)


def _read(file: Path, where: str) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigError(
            f"{where}: {file}, the list of servers, cannot be read: {error.strerror}", field="servers"
        ) from None
