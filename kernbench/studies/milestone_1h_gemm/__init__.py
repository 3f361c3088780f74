"""`milestone-1h-gemm`: stage times, utilisation and bounds of matrix products on one PE.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`:
`shapes` and `points` (what is simulated), `kernel` (what the PE runs), `measurement` (one product,
simulated and checked), `theory` (bounds from the topology file), `rows` (content of
`gemm_sweep.json`), `figures` and `table`.
"""
