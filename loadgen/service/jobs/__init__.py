"""Runs as jobs: queued, executed by a process each, brought to an end whatever happens to whom."""
