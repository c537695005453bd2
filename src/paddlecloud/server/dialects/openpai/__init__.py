"""OpenPAI's clients (seed 004): the VS Code client, the SDK and its command, nni; `/rest-server/api/…`, and pages."""

from __future__ import annotations

from paddlecloud.server.dialects.openpai import groups, jobs, jobs_v1, login, logs, places, portal, unknown, users

# What is not known is answered last.
ROUTERS = (
    *(login.router, jobs.router, jobs_v1.router, logs.router, users.router, groups.router, places.router),
    *portal.ROUTERS,
    unknown.router,
)
