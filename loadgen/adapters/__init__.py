"""Edges: each package is one, and none imports another."""
