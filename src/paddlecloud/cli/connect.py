"""The client that verbs work with: of the configured server, or of the embedded one, started if need be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.model.errors import ConfigError, InvalidError, NotFoundError, UnauthenticatedError

if TYPE_CHECKING:
    from paddlecloud.sdk.client import Client
    from paddlecloud.sdk.profile import Profile, Surroundings


def connect(server: str = "") -> Client:
    """`server` is one that was typed, instead of the configured one."""
    # Imported here, so that --help of a verb pays for none of it.
    from paddlecloud.sdk import profile as profiles
    from paddlecloud.sdk.client import Client

    around = profiles.surroundings()
    if server:
        around = replace(around, variables={**around.variables, "PADDLECLOUD_SERVER": server})
    profile = profiles.load(around)
    if profile.embedded:
        from paddlecloud.cli import local

        local.ensure_server(around)
        profile = profiles.load(around)
    if not profile.identified:
        from paddlecloud.sdk import identity

        raise UnauthenticatedError(identity.why_nobody(profile))
    return Client(profile)


def last_job(client: Client) -> str:
    """The id of the newest job of one's own, for verbs where no job was named; it is said which."""
    from paddlecloud.cli import shell

    newest = client.list(limit=1)
    if not newest:
        raise NotFoundError("you have no job yet; the first one: paddlecloud run FOLDER -- sh run.sh")
    shell.talk(f"your last job: {newest[0].id} ({newest[0].spec.name})")
    return newest[0].id


def named_server(around: Surroundings, typed: str | None, known: Profile, ca: str | None) -> Profile:
    """A profile without an identity, of a server that was named by --server or is configured."""
    from paddlecloud.sdk import profile as profiles
    from paddlecloud.sdk.addresses import server_url

    address = typed or known.server
    if not address:
        raise InvalidError("--server is missing: say which one is meant, such as http://host:8642", field="server")
    try:
        url = server_url(address, "--server")
    except ConfigError:
        raise InvalidError(
            f"--server: {address!r} is not the address of a server: write http://host:port", field="server"
        ) from None
    there = profiles.of_server(around, url)
    sources = {**there.sources, "server": "--server" if typed else known.sources["server"]}
    if ca:
        return replace(there, ca=str(Path(ca).absolute()), sources={**sources, "ca": "--ca"})
    return replace(there, sources=sources)
