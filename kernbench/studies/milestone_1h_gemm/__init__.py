"""`milestone-1h-gemm`: where the time of a matrix product on one PE goes, and how near to its bounds it comes.

`shapes` says which products are simulated, `kernel` is what the PE runs, `point` simulates one product, `theory` computes its
bounds from the topology file, `sweep` has all of them simulated in worker processes, `rows` is what `gemm_sweep.json` holds,
`figures` and `table` show it, `study` is what the command line calls.
"""
