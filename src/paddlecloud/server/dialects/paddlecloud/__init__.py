"""The Go client of PaddlePaddle Cloud (seed 001), every version of it: `/api/v1/…`, `/api-token-auth/`, `/filepub/`."""

from __future__ import annotations

from fastapi import APIRouter

from paddlecloud.server.dialects.paddlecloud import files, jobs, pfs

_PFS = ("/api/v1/pfs", "/api/v1")  # beta.1 and beta.2 leave `/pfs` out


def _pfs() -> APIRouter:
    router = APIRouter(include_in_schema=False)
    for prefix in _PFS:
        router.include_router(pfs.router, prefix=prefix)
        router.include_router(pfs.chunk_router, prefix=prefix)
    return router


ROUTERS: tuple[APIRouter, ...] = (jobs.router, files.router, _pfs())
