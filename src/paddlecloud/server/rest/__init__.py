"""Every route of `/v1`, by subject. A route decodes, calls one service and encodes; it decides nothing."""

from __future__ import annotations

from fastapi import APIRouter

from paddlecloud.server.rest import accounts, files, jobs, server

ROUTERS: tuple[APIRouter, ...] = (server.router, accounts.router, jobs.router, files.router)
