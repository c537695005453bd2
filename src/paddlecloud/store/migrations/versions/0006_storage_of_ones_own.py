"""Adds keys to users' own buckets, and the transfer progress of their jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_time = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "storage_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("created_at", _time, nullable=False),
        sa.Column("key_encrypted", sa.Text, nullable=False),
    )
    op.create_index("ix_storage_keys_user", "storage_keys", ["user"])
    op.create_table(
        "buckets",
        sa.Column("job", sa.Text, sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("storage_key", sa.Text, nullable=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
    )
    op.create_index("ix_buckets_stage", "buckets", ["stage"])
    op.create_index("ix_buckets_storage_key", "buckets", ["storage_key"])
