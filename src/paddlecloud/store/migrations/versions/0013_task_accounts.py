"""Adds the numbers of the accounts that tasks run as."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "task_accounts",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
    )
    op.create_index("ix_task_accounts_number", "task_accounts", ["number"], unique=True)
