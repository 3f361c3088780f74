"""`llama70b-layer`: one decoder layer of Llama 2 70B, tensor parallel over SIPs, part by part.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`: `shape`
(sizes of a layer and of the part of a rank), `projection` and `attention` (its kernels), `weights`
(their elements, packed for the kernels), `program` (of a rank), `reference` (float64), `theory`
(bounds), `measurement`, `rows` (content of the results file), `drawing`.
"""
