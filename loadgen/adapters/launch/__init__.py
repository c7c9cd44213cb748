"""Servers started and surely stopped: one that runs already, a local process, a Compose service."""
