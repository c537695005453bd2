"""Run by Alembic for each upgrade, on the connection and in the transaction given to `migrations.upgrade`."""

from __future__ import annotations

from alembic import context

from paddlecloud.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite supports DDL in transactions: a start that is killed half-way leaves the database unchanged.
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
