"""What the PaddleCloud manual's `submit_job` has by default where other ways to submit have no default."""

from __future__ import annotations

FACE = "manual"  # in JobSpec.face
WALL_TIME_SECONDS = 30 * 60
