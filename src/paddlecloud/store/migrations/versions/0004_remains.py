"""Adds the files that finished jobs left behind, to count, retain and report them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "remains",
        sa.Column("job", sa.Text, sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("files", sa.Integer, nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True)),
        sa.Column("removed_by", sa.Text, nullable=False),
    )
    op.create_index("ix_remains_age", "remains", ["kind", "ended_at", "stage"])
    # Without this index, deleting a job would scan the whole table.
    op.create_index("ix_idempotency_job", "idempotency", ["job"])
