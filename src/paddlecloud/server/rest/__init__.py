"""Every route of `/v1`, by subject. A route decodes, calls one service, has the act recorded and
encodes; it decides nothing."""

from __future__ import annotations

from fastapi import APIRouter

from paddlecloud.server import any_path as any_path  # what routes below name
from paddlecloud.server.rest import (
    accounts,
    audit,
    files,
    groups,
    jobs,
    openpai,
    pfs,
    registry,
    server,
    shared,
    shipping,
    space,
    storage,
)

ROUTERS: tuple[APIRouter, ...] = (
    server.router,
    accounts.router,
    groups.router,
    audit.router,
    jobs.router,
    openpai.router,
    registry.router,
    storage.router,
    files.router,
    pfs.router,
    shared.router,
    shipping.router,
    space.router,
)
