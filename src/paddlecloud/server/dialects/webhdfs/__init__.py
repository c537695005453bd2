"""WebHDFS v1 over the files of the PFS, for clients of HDFS as they are: `/webhdfs/v1/…`, also below `/t/<secret>/`."""

from __future__ import annotations

from fastapi import APIRouter

from paddlecloud.server.dialects.webhdfs import route

ROUTERS: tuple[APIRouter, ...] = (route.router,)
