"""Parameter studies: many simulations, their rows in a JSON file, a table and figures of them.

`catalogue` declares the name, summary and flags of each study. `parameter_study` is the skeleton: a
study declares its points, how one is measured, and how rows are shown. It has a package with the
modules `study` (measures and shows), `rows` (points, rows, content of the file), `figures`, and its
own kernels and closed forms. `kernbench.points` measures the points.

`results_file` writes the rows, `table` prints them, `plots` is the common style of the figures.
`all_reduce` simulates one all-reduce for the studies of collectives.
"""
