"""`kv-transfer`: SIPs that prefill send the KV cache to SIPs that decode.

`points` has the kernel of a layer, too, and the bounds; `rows` which SIP has which rank.
"""
