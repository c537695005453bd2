"""Adds groups with their limits, folders shared with groups, and users' email and extension."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_time = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("users", sa.Column("email", sa.Text, nullable=False, server_default=""))
    op.add_column("users", sa.Column("extension", sa.Text, nullable=False, server_default="{}"))
    op.create_table(
        "groups",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("created_at", _time, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("external_name", sa.Text, nullable=False),
        sa.Column("queues", sa.Text, nullable=False),
        sa.Column("extension", sa.Text, nullable=False),
    )
    op.create_table(
        "group_members",
        sa.Column("group", sa.Text, sa.ForeignKey("groups.name"), primary_key=True),
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), primary_key=True),
    )
    op.create_index("ix_group_members_user", "group_members", ["user"])
    op.create_table(
        "group_quotas",
        sa.Column("group", sa.Text, sa.ForeignKey("groups.name"), primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("running_jobs", sa.Integer),
        sa.Column("waiting_jobs", sa.Integer),
        sa.Column("instances", sa.Integer),
        sa.Column("wall_time_seconds", sa.Integer),
        sa.Column("minutes_a_day", sa.Integer),
        sa.Column("space_bytes", sa.BigInteger),
    )
    op.create_table(
        "shares",
        sa.Column("datacenter", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("created_at", _time, nullable=False),
    )
    op.create_table(
        "share_grants",
        sa.Column("datacenter", sa.Text, primary_key=True),
        sa.Column("share", sa.Text, primary_key=True),
        sa.Column("group", sa.Text, primary_key=True),
        sa.Column("writable", sa.Boolean, nullable=False),
    )
    op.create_index("ix_share_grants_group", "share_grants", ["group"])
