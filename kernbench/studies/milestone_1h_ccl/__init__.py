"""`milestone-1h-ccl`: the time of an all-reduce by size, SIP topology and queue memory.

`networks` are the SIP topologies and the paths of the ring in them, `theory` closed forms,
`reference` the times of another simulator.
"""
