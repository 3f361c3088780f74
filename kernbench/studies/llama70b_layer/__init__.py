"""`llama70b-layer`: one decoder layer of Llama 2 70B, tensor parallel over SIPs, part by part.

Its kernels are those of `kernbench.benches.decoder_layer`; `weights` are their elements, packed for
the kernels, `program` is that of a rank.
"""
