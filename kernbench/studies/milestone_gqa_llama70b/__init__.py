"""`milestone-gqa-llama70b`: grouped-query attention of llama-70B, prefill and decode.

`study` is the command's entry; `validation` joins the parts below to a `ParameterStudy`: `panels`,
`validation_measurement` (one panel on a ring of PEs, simulated and checked), `op_log` (counts of
operations), `validation_rows` (content of `sweep.json`).
"""
