"""`moe-all-to-all`: the exchanges of a mixture of experts, by the skew of the routing.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`:
`points` (what is simulated), `routing` (the experts of each token, drawn), `routing_file` (the
same, from a file), `measurement` (dispatch and combine, simulated and checked), `rows` (content of
`moe_all_to_all.json`), `figures`.
"""
