"""Collectives that `kernbench perf` runs on every rank, measured as nccl-tests measures them.

- `collective`: the collectives, the sizes of a measurement, and the bandwidths of a row;
- `calls`: the buffers and the calls of `torch.distributed`;
- `values`: the random inputs of a check and the expected results;
- `program`: the rank program;
- `bound`: the least time that any algorithm needs.

The arguments and the report are in `kernbench.measure.collectives`.
"""
