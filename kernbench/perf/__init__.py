"""`kernbench perf`: the command line and the table of nccl-tests, for simulated collectives.

`words` reads the command line, `bound` computes what no algorithm can beat, `table` writes what is printed and `--json`,
`command` runs it all. What the ranks run is in `kernbench.benches.collective_perf`.
"""
