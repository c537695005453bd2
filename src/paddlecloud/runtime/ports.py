"""Whether a port can be had on this machine."""

from __future__ import annotations

import _socket as socket  # all that is needed of it; the module around it takes as long to import as a task to fork


def why_taken(port: int) -> str:
    """What keeps a program from listening at a port; "": nothing does."""
    tried = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # At all addresses, as PaddlePaddle's store does: whoever listens at one of them is in the way.
        tried.bind(("0.0.0.0", port))
    except OSError as error:
        return error.strerror or str(error)
    finally:
        tried.close()
    return ""
