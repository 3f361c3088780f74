"""Attention kernels, to use or to copy, and the float64 reference against which they are checked.

`online_softmax` is the arithmetic that all kernels share. `ring_prefill` and `ring_decode` are
kernels whose ranks are PEs in a ring (`rings`). `reference` computes dense attention in float64 and
imports none of them.
"""
