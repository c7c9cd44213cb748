"""Transports over HTTP."""
