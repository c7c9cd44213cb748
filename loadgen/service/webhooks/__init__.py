"""Tells other programs what happened: signed, until they have it."""
