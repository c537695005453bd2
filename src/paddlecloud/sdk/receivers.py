"""Of several servers, the first that can be connected to.

Only who does not answer at all is passed over, before anything was sent: what one of them says, a refusal too, counts,
and nothing is sent twice. One that was taken is kept for as long as its client lives.
"""

from __future__ import annotations

import ssl
from dataclasses import replace

from paddlecloud.model.errors import UnreachableError
from paddlecloud.sdk import trust
from paddlecloud.sdk.connections import BrokenError, Connections
from paddlecloud.sdk.profile import Profile

_CONNECT_SECONDS = 2.0  # each: there may be twenty


def answering(profile: Profile) -> tuple[Connections, Profile]:
    """Connections to the first server that is there, of which one is open, and its profile."""
    silent = []
    for server in profile.servers:
        taken = replace(profile, server=server, servers=())
        connections = trust.connections(taken)
        try:
            connections.open(_CONNECT_SECONDS)
        except BrokenError as error:
            if isinstance(error.cause, ssl.SSLError):
                raise UnreachableError(f"{server} cannot be spoken to: {trust.complaint(error, taken)}") from None
            silent.append(f"{server} ({str(error).lower()})")
        else:
            return connections, taken
    named = profile.sources.get("servers", "the program")
    raise UnreachableError(f"none of {len(silent)} servers answers: {', '.join(silent)}; they were named by {named}")
