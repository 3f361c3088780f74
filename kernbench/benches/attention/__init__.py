"""Attention kernels, to use or to copy, and the float64 reference against which they are checked.

All share the arithmetic of `online_softmax` and the loop of one PE, `flash`, of
`runtime.device.kernels.attention`. `grouped_prefill` and `split_decode` compute a grouped-query
`layer` on all PEs of a SIP; `queues` connects these for `split_decode`. `ring_prefill` and
`ring_decode` are kernels whose ranks are PEs in a ring (`rings`); the ranks of `context_parallel`
are SIPs. `reference` computes dense attention in float64 and imports none of them.
"""
