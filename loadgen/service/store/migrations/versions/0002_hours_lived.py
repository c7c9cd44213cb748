"""Hours in which a service was there."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One step forward."""
    op.create_table(
        "lived",
        sa.Column("hour", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("hour", name=op.f("pk_lived")),
    )


def downgrade() -> None:
    """One step back."""
    op.drop_table("lived")
