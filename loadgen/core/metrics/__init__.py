"""Definitions of what is measured, and their fold over records into a summary."""
