"""Parameter studies: many simulations, their rows in a JSON file, a table and figures of them.

`parameter_study` is the skeleton: a study subclasses `ParameterStudy` and defines what differs.
`kernbench.points` measures the points. `results_file` and `csv_file` write the rows, `table` prints
them, `plots` is the common style of the figures. `all_reduce` simulates one all-reduce for the
studies of collectives. `figures` draws everything in `docs/figures`, `sip_picture` the picture of a
SIP among it.
"""
