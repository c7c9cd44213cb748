"""What the service keeps in its database: SQLite, or PostgreSQL by URL."""
