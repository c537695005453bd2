"""The Go client of PaddlePaddle Cloud (seed 001), every version of it: `/api/v1/…`, `/api-token-auth/`, `/filepub/`."""

from __future__ import annotations

from fastapi import APIRouter

from paddlecloud.server.dialects.paddlecloud import files, jobs, pfs

ROUTERS: tuple[APIRouter, ...] = (jobs.router, files.router, pfs.router, pfs.chunk_router)
