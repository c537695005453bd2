"""Whether a port can be had on this machine."""

from __future__ import annotations

import socket


def why_taken(port: int) -> str:
    """What keeps a program from listening at a port; "": nothing does."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # At all addresses, as PaddlePaddle's store does: whoever listens at one of them is in the way.
            tried.bind(("0.0.0.0", port))
        except OSError as error:
            return error.strerror or str(error)
    return ""
