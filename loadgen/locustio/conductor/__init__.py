"""The process that measures for Locust: it takes ladders from its standard input, one a line, and tells how they go.

Lines in are objects with `do`: `ladder` with the options given as `LocustOptions.given` has them, and the names of the
workers that send the load, null for this process itself; of these, `from_worker` with what one said, and `lost`. SIGINT
stops a ladder in order, a second one at once. The end of the input ends the process, in order too.

Lines out are objects with `event`: `ready` once, with the page of metrics; of each ladder `begun`, `saving` with its
folder once there is one, for each level `level`, `progress` twice a second, and `measured`; at last `ended` with the
exit code, as `loadgen sweep` has it; and `to_worker` with a line for one of them.
"""
