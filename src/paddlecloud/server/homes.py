"""The folder of a home at which results are shown: job code of its user may put anything in its place."""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress

from paddlecloud.files.base import Store
from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.pfs import OUTPUT

log = logging.getLogger(__name__)


def make_output(store: Store, home: str) -> None:
    """Make it, with those above it; what is in its way stays beside it, where its user may look at it or remove it."""
    output = f"{home}/{OUTPUT}"
    try:
        store.make_folder(output)
    except (ConflictError, NotFoundError):
        aside = f"{output}.old-{secrets.token_hex(4)}"
        with suppress(NotFoundError):  # another call has just done it
            store.move(output, aside)
            log.warning("%r was no folder that results can be shown at; it is %r now", output, aside)
        store.make_folder(output)
