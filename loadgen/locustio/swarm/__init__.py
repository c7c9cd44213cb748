"""Locust itself, as a library: its page, its runner and its tables, and beside it the process that measures.

Everything here runs under gevent, which has replaced the blocking calls of the standard library: nothing awaits, and
nothing measures. `python -m loadgen.locustio.swarm FD` reads its options as JSON from the file of that number.
"""
