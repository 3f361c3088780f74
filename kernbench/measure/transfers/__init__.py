"""`kernbench probe`: the time of single transfers on all kinds of routes, simulated and computed.

`cases` lists the transfers; the closed form is `kernbench.oracle.theory.paths.memory_access`.
`measure` simulates them, `tables` prints and `files` writes the results.
"""
