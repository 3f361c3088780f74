"""`ccl-algorithms`: how long an all-reduce takes by each algorithm, and the table of `ccl.yaml` that follows from it.

`points` says what is simulated, `point` simulates one all-reduce and checks its sums, `sweep` has all points simulated in
worker processes, `rows` is what `ccl_algorithms.json` and `ccl_algorithms.csv` hold, `choice` makes the table of the selection
from them, `figures` and `table` show both, `study` is what the command line calls.

`measured.csv` has the rows by which the shipped `ccl.yaml` chooses: the `ccl_algorithms.csv` that
`kernbench --bench ccl-algorithms` writes on the shipped topology.
"""
