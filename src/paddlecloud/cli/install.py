"""The verb install: the folder that the manual's users know, with the command and its client.conf in it."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from paddlecloud.cli import shell
from paddlecloud.cli.parser import Parser, Setup
from paddlecloud.sdk import privatefile
from paddlecloud.sdk import profile as profiles

_CONF = """\
// run paddlecloud gen_token --email=you@example.com, or write what came by mail here
// user_id: your name; ak: access key; sk: secret key
[main]
debug = 0
user_id =
ak =
sk =

// the server: its name or address, and its port
[openapi]
host =
port =

// storage of your own, for public_bos=0
[bos]
ak =
sk =
"""


def install(parser: Parser) -> None:
    parser.add_argument(
        "--manual-layout",
        action="store_true",
        required=True,
        help="make ~/bin/paddlecloud with paddlecloud, paddlecloud.bat and conf/client.conf in it",
    )
    parser.set_defaults(run=_install)


VERBS: Mapping[str, Setup] = {"install": install}


def script() -> str:
    """The command as a script that runs this installation."""
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m paddlecloud "$@"\n'


def _install(_: Namespace) -> None:
    around = profiles.surroundings()
    folder = around.home / "bin" / "paddlecloud"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "paddlecloud", script())
    _write(folder / "paddlecloud.bat", f'@"{sys.executable}" -m paddlecloud %*\r\n')
    conf = folder / "conf" / "client.conf"
    if not conf.exists():
        privatefile.write(conf, _CONF.encode())
    shell.say(str(folder))
    shell.talk(f'put it on your PATH: export PATH="{folder}:$PATH"')


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="")
    file.chmod(0o755)
