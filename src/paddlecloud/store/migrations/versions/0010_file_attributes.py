"""Adds the file attributes that HDFS clients set and read back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "file_attributes",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("area", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("said", sa.Text, nullable=False),
    )
    op.create_index("ix_file_attributes_folder", "file_attributes", ["folder"])
    op.create_index("ix_file_attributes_area", "file_attributes", ["area", "at"])
