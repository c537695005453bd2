"""Adds columns to list, sort and count jobs without reading their specs, and revoked session tokens."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_time = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("pool", sa.Text, nullable=False, server_default="default"))
    for column in ("roles", "tasks", "gpus"):
        op.add_column("jobs", sa.Column(column, sa.Integer, nullable=False, server_default="0"))
    _fill()
    op.create_table(
        "ended_passes",
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("ended_at", _time, nullable=False),
        sa.Column("expires_at", _time, nullable=False),
    )
    op.create_index("ix_ended_passes_expires_at", "ended_passes", ["expires_at"])


def _fill() -> None:
    jobs = sa.table(
        "jobs",
        *(sa.column(name, sa.Text) for name in ("id", "spec", "pool")),
        *(sa.column(name, sa.Integer) for name in ("roles", "tasks", "gpus")),
    )
    connection = op.get_bind()
    found = [
        {"of": job, **_asked(json.loads(spec))} for job, spec in connection.execute(sa.select(jobs.c.id, jobs.c.spec))
    ]
    if found:
        columns: dict[str, Any] = {name: sa.bindparam(f"its_{name}") for name in ("pool", "roles", "tasks", "gpus")}
        connection.execute(sa.update(jobs).where(jobs.c.id == sa.bindparam("of")).values(columns), found)


def _asked(spec: dict[str, Any]) -> dict[str, Any]:
    roles = spec.get("roles", [])
    return {
        "its_pool": spec.get("queue") or spec.get("cluster") or "default",
        "its_roles": len(roles),
        "its_tasks": sum(role["count"] for role in roles),
        "its_gpus": sum(role["count"] * (role.get("resources") or {}).get("gpus", 0) for role in roles),
    }
