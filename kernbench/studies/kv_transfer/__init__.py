"""`kv-transfer`: SIPs that prefill send the KV cache to SIPs that decode.

`study` is the command's entry with the `flags`, and `definition` the `ParameterStudy`. `points` are
its sizes and `sides` which SIP has which rank; `computation` has the kernel of a layer, `program`
the rank program, `measurement` simulates a row. `theory` has its bounds, `rows` are the content of
the file, `figures` and `link_figure` the figures.
"""
