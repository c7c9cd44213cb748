"""Run folders and sweep folders on disk."""
