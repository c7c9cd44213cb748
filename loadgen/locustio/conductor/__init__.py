"""The process that measures for Locust: it takes ladders from its standard input, one a line, and tells how they go.

Lines in are objects with `do`: `ladder` with the options given as `LocustOptions.given` has them, and, where workers
send the load, `from_worker` with what one of them said. SIGINT stops a ladder in order, a second one at once. The end
of the input ends the process, in order too.

Lines out are objects with `event`: `ready` once, with the page of metrics; of each ladder `begun`, for each level
`level`, `progress` twice a second, and `measured`; at last `ended` with the exit code, as `loadgen sweep` has it.
"""
