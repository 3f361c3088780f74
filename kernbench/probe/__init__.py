"""`kernbench probe`: the time of single transfers on all kinds of routes, simulated and computed.

`cases` lists the transfers, `routes` their hops from the graph of the simulator; the closed form is
`kernbench.theory.transfers`. `measure` simulates them, `tables` prints and `files` writes the
results.
"""
