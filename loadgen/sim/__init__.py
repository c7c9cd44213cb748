"""Servers to measure against: `truth`, whose every emission time is known."""
