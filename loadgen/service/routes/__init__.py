"""The API: each module translates between HTTP and one part of the service."""
