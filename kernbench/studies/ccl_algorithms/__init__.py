"""`ccl-algorithms`: the time of an all-reduce by algorithm, and the selection table of `ccl.yaml`.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`:
`points` (what is simulated), `measurement` (one all-reduce, simulated and checked), `rows` (content
of `ccl_algorithms.json`), `selection` (the rule that makes the table of `ccl.yaml`), `figures` and
`table`.
"""
