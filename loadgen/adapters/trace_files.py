"""Trace and prompts files on disk."""
