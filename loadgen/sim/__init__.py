"""Servers of known behaviour that stand in for real ones."""
