"""The run monotonic clock."""
