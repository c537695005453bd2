"""The verb webhdfs: the addresses by which clients of HDFS, such as OpenPAI's, reach your files."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.model.accounts import VSCODE_SETTING, vscode_line

_LOGINS = "logins"
_PLAIN = {
    "off": "this server believes no name without that secret",
    "tasks": "without that secret this server believes a name (user.name) only from a running task of that user",
    _LOGINS: "without that secret this server believes a name (user.name) also from an address where "
    "only that user has just logged in through OpenPAI's API",
}


class Addresses(Struct, frozen=True, kw_only=True):
    """What each client is configured with; both hold the same secret."""

    user: str
    url: str  # of hdfs.InsecureClient
    webhdfs_uri: str  # of OpenPAI's VS Code client, which adds http:// itself
    vscode: str  # the line of that client's configuration
    plain: str


def webhdfs(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_webhdfs)


VERBS: Mapping[str, Setup] = {"webhdfs": webhdfs}


def _webhdfs(args: Namespace) -> None:
    with connect() as client:
        found = client.accounts.webhdfs()
        server = client.profile.server.rstrip("/")
    host = urlsplit(server).netloc
    made = Addresses(
        user=found.user,
        url=f"{server}{found.path}",
        webhdfs_uri=f"{host}{found.path}/webhdfs/v1",
        vscode=vscode_line(host, found.path),
        plain=found.plain,
    )
    show.one(made, args.output, made.url, _text)
    shell.talk(
        f"whoever has this address reads and changes every file of {made.user}: keep it as you keep a password; "
        "`paddlecloud token revoke --old-clients` makes it worthless, and then this prints another"
    )
    if server.startswith("https:"):
        shell.talk("the VS Code client reaches WebHDFS by http alone: on this server, which has https, it cannot")
    elif made.plain != _LOGINS:
        shell.talk(f"the VS Code client needs no such line once the operator writes {VSCODE_SETTING}")
    shell.talk(_PLAIN.get(made.plain, f"the server says of names without that secret: {made.plain}"))


def _text(made: Addresses) -> str:
    return "\n".join(
        [
            f"hdfs.InsecureClient: {made.url}",
            f"webhdfs_uri:         {made.webhdfs_uri}",
            f"user.name:           {made.user}",
            f"in VS Code:          {made.vscode}",
        ]
    )
