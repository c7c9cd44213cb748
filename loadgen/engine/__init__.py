"""Drives a plan against a server through four ports. Asyncio, no sockets, no files."""
