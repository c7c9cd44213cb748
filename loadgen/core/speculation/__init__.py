"""Acceptance of draft tokens from what servers and streams tell."""
