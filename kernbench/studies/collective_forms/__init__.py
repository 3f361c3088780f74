"""`collective-forms`: the times of all collectives by ranks and size, against closed forms.

`study` is the command's entry; `definition` joins the parts below to a `ParameterStudy`:
`points` (what is simulated), `measurement` (one call, simulated and checked), `rows` (content of
`collective_forms.json`), `figures`. The forms are in
`kernbench.oracle.theory.collectives.collective_forms`.
"""
