"""`llama70b-layer`: one decoder layer of Llama 2 70B, tensor parallel over SIPs, part by part.

`shape` has the sizes of a layer, of the part of a rank, of a product; `projection` with `cube_sums`
and `attention` are its kernels, `weights` their elements, packed for the kernels, `program` is that
of a rank.
"""
