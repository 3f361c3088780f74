"""Explains where the time of a recorded run went.

`breakdown` divides the time of each rank and of each PE into parts; `path` walks back from the end
of the run along what each operation waited for: the critical path. `load` finds the busiest links,
channels and engines, and `bound` the least time that they allow. All of it is computed from the
tables of a run (`kernbench.explain.records`), in integer picoseconds.
"""
