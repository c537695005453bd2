"""Adds the clusters of a job's list that it no longer tries, with the reasons."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("passed", sa.Text, nullable=False, server_default="{}"))
