"""PaddleCloud: a training cloud that fits in one process and grows to a cluster.

`from paddlecloud import Client` is the client for programs; it is imported when asked for, so that the command and
the tools that only want a version start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddlecloud.sdk.client import Client

__all__ = ["Client", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "Client":
        from paddlecloud.sdk.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
