"""`milestone-gqa-llama70b`: grouped-query attention of llama-70B, prefill and decode.

It has two scales, each a study with a file `sweep.json` of its own content: `validation` (rings of
PEs and small tensors: counts, tolerances) and `headline` (a layer of the model on 1 to 8 SIPs:
times, parts, bounds). `op_log` serves both.
"""
