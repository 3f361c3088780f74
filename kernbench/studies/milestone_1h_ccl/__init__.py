"""`milestone-1h-ccl`: how long an all-reduce takes, by size, SIP topology and kind of queue, and what the closed forms say.

`networks` are the SIP topologies and the way of the ring in them, `points` says what is simulated, `point` simulates one
all-reduce and checks its sums, `theory` has the closed forms, `reference` the figures of another simulator, `sweep` has all
points simulated in worker processes, `rows` is what `ccl_sweep.json` and `ccl_summary.csv` hold, `figures`, `breakdown`,
`drawing` and `table` show it, `study` is what the command line calls.
"""
