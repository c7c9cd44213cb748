"""The simulator: an engine of `core.simulation` that answers in real time, as one of the known servers would.

`language` is its model and tokenizer, `asked` reads requests, `serving` runs the engine's steps against the clock,
`dialect` says what a server's answers and pages look like, one module a server; `app` puts HTTP around them.
"""
