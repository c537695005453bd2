"""Adds a job's retries by reason, and since when it has been quiet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("retries", sa.Text, nullable=False, server_default="{}"))
    op.add_column("jobs", sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("tasks", sa.Column("quiet_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("quiet_since", sa.DateTime(timezone=True), nullable=True))
