"""A run that several processes drive, each its share of one plan: `--workers N`.

A worker is `python -m loadgen.wiring.workers`, a child of the process that leads the run. They talk in lines of JSON,
the types of which are in `messages`, over the child's standard input and output:

    leader                                     worker
    job        what to drive, which share  ─►  opens and checks the data, fills its look-ahead, opens connections
                                           ◄─  ready      what it found in the data
    start      the instant to begin at     ─►  sends
                                           ◄─  began      its first measured request is due, or leaves
    measuring  the earliest such instant   ─►  measures from there, and for `--duration` ends by it
                                           ◄─  progress   four times a second: counts, outlook, totals since the last
    stop, abort                            ─►  ends in order, or at once
                                           ◄─  ended      how its part ended, once its records are on the disk
                                           ◄─  failed     instead of any of these: why it cannot do its part

All instants are nanoseconds of the run's axis. On one machine CLOCK_MONOTONIC is common, so the job tells the leader's
origin on it; on another machine it tells the origin's wall time alone, with how far that machine's clock is ahead.
A worker takes no signals, since whoever leads it does; it ends by itself when its standard input does, as it will when
the leader dies, and what it has recorded stays in its file, `records.K.jsonl.zst` of the run folder. Secrets come in
the job or from the environment, never on the command line. A process does one job and ends.

`child` is a worker and `leader` what it sees of the other side. There `leading` holds what is made of the messages,
whatever they come by, `crew` where workers come from, and `team` drives a run with them.
"""
