"""Adds OpenPAI jobs' original configs, their secrets, and job tags."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job_configs",
        _job(),
        sa.Column("protocol", sa.Integer, nullable=False),
        sa.Column("warnings", sa.Text, nullable=False),
        sa.Column("config", sa.Text, nullable=False),
    )
    op.create_table("job_secrets", _job(), sa.Column("secrets_encrypted", sa.Text, nullable=False))
    op.create_table("job_tags", _job(), sa.Column("tag", sa.Text, primary_key=True))
    op.create_index("ix_job_tags_tag", "job_tags", ["tag"])


def _job() -> sa.Column[str]:
    return sa.Column("job", sa.Text, sa.ForeignKey("jobs.id"), primary_key=True)
