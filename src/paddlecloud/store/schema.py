"""The table definitions for queries; `migrations/` creates the tables, and a test compares the two.

Only features that both SQLite and PostgreSQL support are used. Long texts come last in a row, since SQLite reads a row
only up to the last requested column.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, MetaData, Table, false, text

from paddlecloud.store.columns import maybe_number as _maybe_number
from paddlecloud.store.columns import maybe_text as _maybe_text
from paddlecloud.store.columns import maybe_time as _maybe_time
from paddlecloud.store.columns import number as _number
from paddlecloud.store.columns import serial as _serial
from paddlecloud.store.columns import text as _text
from paddlecloud.store.columns import time as _time

metadata = MetaData()

users = Table(
    "users",
    metadata,
    _text("name", primary_key=True),
    _text("role"),
    _maybe_text("password_hash"),
    Column("disabled", Boolean, nullable=False, server_default=false()),
    _time("created_at"),
    _number("epoch", server_default="0"),
    _text("email", server_default=text("''")),
    _text("extension", server_default="{}"),
)

# A user's limits on one cluster; an empty `cluster` means all clusters together.
quotas = Table(
    "quotas",
    metadata,
    _text("user", ForeignKey("users.name"), primary_key=True),
    _text("cluster", primary_key=True),
    _maybe_number("running_jobs"),
    _maybe_number("waiting_jobs"),
    _maybe_number("instances"),
    _maybe_number("wall_time_seconds"),
    _maybe_number("minutes_a_day"),
    Column("space_bytes", BigInteger, nullable=True),
)

groups = Table(
    "groups",
    metadata,
    _text("name", primary_key=True),
    _time("created_at"),
    _text("description"),
    _text("external_name"),
    _text("queues"),
    _text("extension"),
)

group_members = Table(
    "group_members",
    metadata,
    _text("group", ForeignKey("groups.name"), primary_key=True),
    _text("user", ForeignKey("users.name"), primary_key=True),
    Index("ix_group_members_user", "user"),
)

# The limits of each member of a group, like a user's.
group_quotas = Table(
    "group_quotas",
    metadata,
    _text("group", ForeignKey("groups.name"), primary_key=True),
    _text("cluster", primary_key=True),
    _maybe_number("running_jobs"),
    _maybe_number("waiting_jobs"),
    _maybe_number("instances"),
    _maybe_number("wall_time_seconds"),
    _maybe_number("minutes_a_day"),
    Column("space_bytes", BigInteger, nullable=True),
)

# PFS folders shared with groups. A grant's group may be a computed one, so it references no table.
shares = Table(
    "shares",
    metadata,
    _text("datacenter", primary_key=True),
    _text("name", primary_key=True),
    _time("created_at"),
)

share_grants = Table(
    "share_grants",
    metadata,
    _text("datacenter", primary_key=True),
    _text("share", primary_key=True),
    _text("group", primary_key=True),
    Column("writable", Boolean, nullable=False),
    Index("ix_share_grants_group", "group"),
)

access_keys = Table(
    "access_keys",
    metadata,
    _text("ak", primary_key=True),
    _text("user", ForeignKey("users.name")),
    _time("created_at"),
    _text("sk_encrypted"),
    _maybe_time("ahead_until"),
    Index("ix_access_keys_user", "user"),
)

tokens = Table(
    "tokens",
    metadata,
    _text("id", primary_key=True),
    _text("user", ForeignKey("users.name")),
    _text("name"),
    _text("scope"),
    _time("created_at"),
    _maybe_time("expires_at"),
    _text("secret_hash"),
    Index("ix_tokens_user", "user"),
    Index("ix_tokens_secret_hash", "secret_hash", unique=True),
)

jobs = Table(
    "jobs",
    metadata,
    _serial("seq"),
    _text("id"),
    _text("user"),
    _text("name"),
    _text("state"),
    _number("version"),
    _number("attempt"),
    _text("cluster"),
    _number("priority"),
    _maybe_text("stop"),
    _text("group_hash"),
    _time("created_at"),
    _maybe_time("started_at"),
    _maybe_time("running_since"),
    _maybe_time("finished_at"),
    Column("duration_seconds", Float, nullable=True),
    _maybe_text("tree"),
    _text("queue_reason"),
    _text("error"),
    _maybe_text("placement"),
    _text("spec"),
    Column("hidden", Boolean, nullable=False, server_default=false()),
    _text("retries", server_default="{}"),
    _maybe_time("queued_at"),
    _maybe_time("quiet_since"),
    _text("passed", server_default="{}"),
    _text("pool", server_default="default"),
    _number("roles", server_default="0"),
    _number("tasks", server_default="0"),
    _number("gpus", server_default="0"),
    Index("ix_jobs_id", "id", unique=True),
    Index("ix_jobs_user", "user", "seq"),
    Index("ix_jobs_user_name", "user", "name", "seq"),
    Index("ix_jobs_user_state", "user", "state", "seq"),
    Index("ix_jobs_state", "state", "seq"),
    Index("ix_jobs_group", "group_hash", "seq"),
    Index("ix_jobs_tree", "user", "tree"),
    sqlite_autoincrement=True,
)

attempts = Table(
    "attempts",
    metadata,
    _text("job", ForeignKey("jobs.id"), primary_key=True),
    _number("attempt", primary_key=True, autoincrement=False),
    _text("handle"),
    _text("cluster"),
    Column("cleaned", Boolean, nullable=False, server_default=false()),
    _maybe_text("user"),
    _maybe_time("running_at"),
    _maybe_time("stopped_at"),
    Index("ix_attempts_handle", "handle", unique=True),
    Index("ix_attempts_cleaned", "cleaned"),
    Index("ix_attempts_user", "user", "stopped_at"),
)

tasks = Table(
    "tasks",
    metadata,
    _text("handle", ForeignKey("attempts.handle"), primary_key=True),
    _text("name", primary_key=True),
    _number("position"),
    _text("state"),
    _maybe_number("exit_code"),
    _maybe_number("signal"),
    _maybe_time("started_at"),
    _maybe_time("ended_at"),
    _number("restarts"),
    _text("reason"),
    _text("tail"),
    _maybe_time("quiet_since"),
)

history = Table(
    "history",
    metadata,
    _serial("seq"),
    _text("job", ForeignKey("jobs.id")),
    _text("user"),
    _number("attempt"),
    _time("at"),
    _maybe_text("from_state"),
    _text("to_state"),
    _text("why"),
    Index("ix_history_job", "job", "seq"),
    Index("ix_history_user", "user", "seq"),
    sqlite_autoincrement=True,
)

idempotency = Table(
    "idempotency",
    metadata,
    _text("user", primary_key=True),
    _text("key", primary_key=True),
    _text("body_hash"),
    _text("job", ForeignKey("jobs.id")),
    _time("created_at"),
    Index("ix_idempotency_job", "job"),
)

# The files that each finished job left behind, measured once nothing of it runs any more.
remains = Table(
    "remains",
    metadata,
    _text("job", ForeignKey("jobs.id"), primary_key=True),
    _text("kind", primary_key=True),
    _text("user"),
    _time("ended_at"),
    _text("stage"),
    Column("size_bytes", BigInteger, nullable=False),
    _number("files"),
    _maybe_time("removed_at"),
    _text("removed_by"),
    Index("ix_remains_age", "kind", "ended_at", "stage"),
)

# Original configs of OpenPAI jobs, without their secrets, which are separate and deleted when the job is cleaned up.
job_configs = Table(
    "job_configs",
    metadata,
    _text("job", ForeignKey("jobs.id"), primary_key=True),
    _number("protocol"),
    _text("warnings"),
    _text("config"),
)

job_secrets = Table(
    "job_secrets",
    metadata,
    _text("job", ForeignKey("jobs.id"), primary_key=True),
    _text("secrets_encrypted"),
)

job_tags = Table(
    "job_tags",
    metadata,
    _text("job", ForeignKey("jobs.id"), primary_key=True),
    _text("tag", primary_key=True),
    Index("ix_job_tags_tag", "tag"),
)

# Logins with which a backend pulls images for a user.
registries = Table(
    "registries",
    metadata,
    _text("user", ForeignKey("users.name"), primary_key=True),
    _text("name", primary_key=True),
    _text("server"),
    _text("username"),
    _text("password_encrypted"),
    _time("created_at"),
)

# Keys to users' own buckets, deleted as soon as no job needs them any more.
storage_keys = Table(
    "storage_keys",
    metadata,
    _text("id", primary_key=True),
    _text("user", ForeignKey("users.name")),
    _text("url"),
    _time("created_at"),
    _text("key_encrypted"),
    Index("ix_storage_keys_user", "user"),
)

# The transfer progress of a job's files from its user's own bucket or other inputs.
buckets = Table(
    "buckets",
    metadata,
    _text("job", ForeignKey("jobs.id"), primary_key=True),
    _text("storage_key"),
    _text("stage"),
    _text("url"),
    _text("why"),
    Index("ix_buckets_stage", "stage"),
    Index("ix_buckets_storage_key", "storage_key"),
)

publications = Table(
    "publications",
    metadata,
    _text("uuid", primary_key=True),
    _text("user", ForeignKey("users.name")),
    _text("path"),
    _time("created_at"),
    Index("ix_publications_user", "user", "created_at"),
)

# The size of a user's home in a datacenter: the last count plus the changes since.
pfs_use = Table(
    "pfs_use",
    metadata,
    _text("user", primary_key=True),
    _text("datacenter", primary_key=True),
    Column("size_bytes", BigInteger, nullable=False),
    Column("files", BigInteger, nullable=False),
    _time("counted_at"),
)

# Revoked session tokens, until they would have expired.
ended_passes = Table(
    "ended_passes",
    metadata,
    _text("user", ForeignKey("users.name"), primary_key=True),
    _text("id", primary_key=True),
    _time("ended_at"),
    _time("expires_at"),
    Index("ix_ended_passes_expires_at", "expires_at"),
)

# Account numbers of users' tasks and of shared folders. A number is never reused, since files may still belong to it.
task_accounts = Table(
    "task_accounts",
    metadata,
    _text("owner", primary_key=True),
    _number("number"),
    Index("ix_task_accounts_number", "number", unique=True),
)

# Attributes set by HDFS clients, by the hashes of the file's path and of its folder.
file_attributes = Table(
    "file_attributes",
    metadata,
    _text("key", primary_key=True),
    _text("folder"),
    _text("area"),
    _text("version"),
    _time("at"),
    _text("path"),
    _text("said"),
    Index("ix_file_attributes_folder", "folder"),
    Index("ix_file_attributes_area", "area", "at"),
)

audit = Table(
    "audit",
    metadata,
    _serial("seq"),
    _time("at"),
    _text("user"),
    _text("address"),
    _text("action"),
    _text("target"),
    _text("request_id"),
    _text("detail"),
    Index("ix_audit_user", "user", "seq"),
    Index("ix_audit_at", "at"),
    sqlite_autoincrement=True,
)
