"""OpenPAI's clients (seed 004): the VS Code client, the SDK and its command, nni; `/rest-server/api/…`, and pages."""

from __future__ import annotations

from paddlecloud.server.dialects.openpai import jobs, jobs_v1, login, logs, unknown

# What is not known is answered last.
ROUTERS = (login.router, jobs.router, jobs_v1.router, logs.router, unknown.router)
