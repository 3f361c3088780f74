"""`ccl-algorithms`: the times of collectives by algorithm, and the selection tables of `ccl.yaml`.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`:
`points` (what is simulated), `measurement` (one call, simulated and checked), `rows` (content
of `ccl_algorithms.json`), `selection` (the rule that makes the tables of `ccl.yaml`), `grids`
(points and rule for grids of SIPs), `figures` and `table`.
"""
