"""Kernels of a decoder layer of llama on all PEs of a SIP: its products and its attention.

`shape` has the sizes of the layer and divides a product over PEs. `projection` reads each weight
once, and `cube_sums` adds up its parts over the PEs of a cube. The study `llama70b-layer` runs them
as a layer, `kv-transfer` takes the sizes.
"""
