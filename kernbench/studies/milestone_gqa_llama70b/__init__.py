"""`milestone-gqa-llama70b`: grouped-query attention of llama-70B, prefill and decode.

`study` is the command's entry. It runs one of two scales, each a `ParameterStudy` with a file
`sweep.json` of its own content: `validation` (rings of PEs and small tensors: counts, tolerances)
and `headline` (a layer of the model on 1 to 8 SIPs: times, parts, bounds). `panels`, `op_log` and
`time_parts` serve both; the other modules have the name of their scale first.
"""
