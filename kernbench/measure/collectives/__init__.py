"""`kernbench perf`: the arguments and the report of nccl-tests, for simulated collectives.

- `arguments`: the flags, and the request that they make;
- `measurement`: the run and its report;
- `table`: the lines of the report, and the rows as JSON.

What the ranks run, and the least time that any algorithm needs, are in
`kernbench.benches.collective_perf`.
"""
