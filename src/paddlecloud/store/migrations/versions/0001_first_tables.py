"""Creates the first tables: users and their credentials, jobs, attempts, tasks and history."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_time = sa.DateTime(timezone=True)
_serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _users()
    _jobs()
    _attempts()
    _history()


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("password_hash", sa.Text),
        sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", _time, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False, server_default="0"),
        sa.Column("quota_running_jobs", sa.Integer),
        sa.Column("quota_instances", sa.Integer),
        sa.Column("quota_wall_time_seconds", sa.Integer),
    )
    op.create_table(
        "access_keys",
        sa.Column("ak", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), nullable=False),
        sa.Column("created_at", _time, nullable=False),
        sa.Column("sk_encrypted", sa.Text, nullable=False),
    )
    op.create_index("ix_access_keys_user", "access_keys", ["user"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, sa.ForeignKey("users.name"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("created_at", _time, nullable=False),
        sa.Column("expires_at", _time),
        sa.Column("secret_hash", sa.Text, nullable=False),
    )
    op.create_index("ix_tokens_user", "tokens", ["user"])
    op.create_index("ix_tokens_secret_hash", "tokens", ["secret_hash"], unique=True)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("stop", sa.Text),
        sa.Column("group_hash", sa.Text, nullable=False),
        sa.Column("created_at", _time, nullable=False),
        sa.Column("started_at", _time),
        sa.Column("running_since", _time),
        sa.Column("finished_at", _time),
        sa.Column("duration_seconds", sa.Float),
        sa.Column("queue_reason", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("placement", sa.Text),
        sa.Column("spec", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_id", "jobs", ["id"], unique=True)
    op.create_index("ix_jobs_user", "jobs", ["user", "seq"])
    op.create_index("ix_jobs_user_name", "jobs", ["user", "name", "seq"])
    op.create_index("ix_jobs_user_state", "jobs", ["user", "state", "seq"])
    op.create_index("ix_jobs_state", "jobs", ["state", "seq"])
    op.create_index("ix_jobs_group", "jobs", ["group_hash", "seq"])
    op.create_table(
        "idempotency",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("body_hash", sa.Text, nullable=False),
        sa.Column("job", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
        sa.Column("created_at", _time, nullable=False),
    )


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("job", sa.Text, sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("handle", sa.Text, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("cleaned", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_index("ix_attempts_handle", "attempts", ["handle"], unique=True)
    op.create_index("ix_attempts_cleaned", "attempts", ["cleaned"])
    op.create_table(
        "tasks",
        sa.Column("handle", sa.Text, sa.ForeignKey("attempts.handle"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("signal", sa.Integer),
        sa.Column("started_at", _time),
        sa.Column("ended_at", _time),
        sa.Column("restarts", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("tail", sa.Text, nullable=False),
    )


def _history() -> None:
    op.create_table(
        "history",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("job", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("at", _time, nullable=False),
        sa.Column("from_state", sa.Text),
        sa.Column("to_state", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_history_job", "history", ["job", "seq"])
    op.create_index("ix_history_user", "history", ["user", "seq"])
