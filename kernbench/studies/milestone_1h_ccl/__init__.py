"""`milestone-1h-ccl`: the time of an all-reduce by size, SIP topology and queue memory.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`:
`networks` (the SIP topologies and the paths of the ring in them), `points` (what is simulated),
`measurement` (one all-reduce, simulated and checked), `theory` (closed forms), `reference` (times
of another simulator), `rows` (content of `ccl_sweep.json`), `figures`, `reference_figure`,
`topology_figure` and `table`.
"""
