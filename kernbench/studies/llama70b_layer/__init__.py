"""`llama70b-layer`: one decoder layer of Llama 2 70B, tensor parallel over SIPs, part by part.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`: `shape`
and `projection_shape` (sizes of a layer, of the part of a rank, of a product), `projection` with
`weight_panels`, `cube_sums` and `cube_barrier`, and `attention` (its kernels), `weights` (their
elements, packed for the kernels), `program` (of a rank), `reference` (float64), `theory` (bounds),
`measurement`, `rows` (content of the results file), `drawing`.
"""
