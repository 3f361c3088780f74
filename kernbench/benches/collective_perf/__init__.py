"""Collectives measured as nccl-tests measures them: what `kernbench perf` runs on every rank.

`collective` says what is measured and what its numbers mean, `calls` makes the calls, `values` has the data that goes in and
must come out, `program` is what a rank runs. The command line and the table are in `kernbench.perf`.
"""
