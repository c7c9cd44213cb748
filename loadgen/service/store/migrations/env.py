"""How Alembic reaches the database: by the connection that it is given."""

from alembic import context

from loadgen.service.store.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
