"""`ring-attention`: one attention layer whose sequence is divided over a ring of SIPs.

`study` is the command's entry and `definition` the `ParameterStudy`. `points` are its sizes,
`program` the rank program, `measurement` one layer, simulated and checked; `theory` its bounds,
`rows` the content of the file, `figures` the figures.
"""
