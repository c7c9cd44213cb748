"""Locust's page, shape and workers around our measurement.

Two kinds of process, which share values and no library: Locust's own, where gevent has replaced the standard library's
blocking calls, and the conductor, a clean process in which asyncio measures. They exchange lines of JSON.
"""
