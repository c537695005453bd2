"""Adds limits per cluster, attempts' run times, jobs' trees, and the audit log."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_time = sa.DateTime(timezone=True)
_serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _quotas()
    _attempts()
    _trees()
    _audit()


def _quotas() -> None:
    op.create_table(
        "quotas",
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("running_jobs", sa.Integer),
        sa.Column("waiting_jobs", sa.Integer),
        sa.Column("instances", sa.Integer),
        sa.Column("wall_time_seconds", sa.Integer),
        sa.Column("minutes_a_day", sa.Integer),
    )
    op.execute(
        'INSERT INTO quotas ("user", cluster, running_jobs, instances, wall_time_seconds) '
        "SELECT name, '', quota_running_jobs, quota_instances, quota_wall_time_seconds FROM users "
        "WHERE quota_running_jobs IS NOT NULL OR quota_instances IS NOT NULL OR quota_wall_time_seconds IS NOT NULL"
    )
    for column in ("quota_running_jobs", "quota_instances", "quota_wall_time_seconds"):
        op.drop_column("users", column)


def _attempts() -> None:
    """Fill in times only for each job's last attempt; those of earlier attempts are unknown."""
    op.add_column("attempts", sa.Column("user", sa.Text))
    op.add_column("attempts", sa.Column("running_at", _time))
    op.add_column("attempts", sa.Column("stopped_at", _time))
    op.execute('UPDATE attempts SET "user" = (SELECT jobs."user" FROM jobs WHERE jobs.id = attempts.job)')
    op.execute(
        "UPDATE attempts SET "
        "running_at = (SELECT running_since FROM jobs WHERE jobs.id = attempts.job), "
        "stopped_at = (SELECT finished_at FROM jobs WHERE jobs.id = attempts.job) "
        "WHERE attempt = (SELECT jobs.attempt FROM jobs WHERE jobs.id = attempts.job)"
    )
    op.create_index("ix_attempts_user", "attempts", ["user", "stopped_at"])


def _trees() -> None:
    op.add_column("jobs", sa.Column("tree", sa.Text))
    jobs = sa.table("jobs", sa.column("id", sa.Text), sa.column("tree", sa.Text), sa.column("spec", sa.Text))
    connection = op.get_bind()
    trees = [
        {"of": job, "found": tree}
        for job, spec in connection.execute(sa.select(jobs.c.id, jobs.c.spec))
        if (tree := json.loads(spec).get("tree"))
    ]
    if trees:
        connection.execute(
            sa.update(jobs).where(jobs.c.id == sa.bindparam("of")).values(tree=sa.bindparam("found")), trees
        )
    op.create_index("ix_jobs_tree", "jobs", ["user", "tree"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("at", _time, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_user", "audit", ["user", "seq"])
    op.create_index("ix_audit_at", "audit", ["at"])
