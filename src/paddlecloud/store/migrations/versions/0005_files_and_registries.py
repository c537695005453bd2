"""Adds registry logins, published files, PFS usage and limits, and hidden jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_time = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("quotas", sa.Column("space_bytes", sa.BigInteger))
    op.create_table(
        "registries",
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("username", sa.Text, nullable=False),
        sa.Column("password_encrypted", sa.Text, nullable=False),
        sa.Column("created_at", _time, nullable=False),
    )
    op.create_table(
        "publications",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("created_at", _time, nullable=False),
    )
    op.create_index("ix_publications_user", "publications", ["user", "created_at"])
    op.create_table(
        "pfs_use",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("datacenter", sa.Text, primary_key=True),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("files", sa.BigInteger, nullable=False),
        sa.Column("counted_at", _time, nullable=False),
    )
