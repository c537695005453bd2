"""The client that verbs work with: of the configured server, or of the embedded one, started if need be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecloud.model.errors import UnauthenticatedError

if TYPE_CHECKING:
    from paddlecloud.sdk.client import Client


def connect() -> Client:
    # Imported here, so that --help of a verb pays for none of it.
    from paddlecloud.sdk import profile as profiles
    from paddlecloud.sdk.client import Client

    around = profiles.surroundings()
    profile = profiles.load(around)
    if profile.embedded:
        from paddlecloud.cli import serve

        serve.ensure_server(around)
        profile = profiles.load(around)
    if not profile.identified:
        raise UnauthenticatedError(
            f"nothing says who you are at {profile.server}: paddlecloud login --server {profile.server}, "
            "or set PADDLECLOUD_TOKEN"
        )
    return Client(profile)
