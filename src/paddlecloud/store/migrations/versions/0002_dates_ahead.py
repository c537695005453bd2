"""Adds the latest future date accepted for each access key, so that no request can be replayed after a restart."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("access_keys", sa.Column("ahead_until", sa.DateTime(timezone=True)))
