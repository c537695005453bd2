"""`python -m paddlecloud` is the command `paddlecloud`."""

from __future__ import annotations

from paddlecloud.cli.main import start

start()
