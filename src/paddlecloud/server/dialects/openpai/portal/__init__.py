"""Plain pages at the addresses that OpenPAI's clients open: a job, the list of them, and what one needs around them.

They are made on the server, without a script; the console is another thing.
"""

from __future__ import annotations

from paddlecloud.server.dialects.openpai.portal import jobs, sessions

ROUTERS = (sessions.router, jobs.router)
