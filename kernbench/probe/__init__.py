"""`kernbench probe`: what one transfer costs on every kind of way, measured and computed, and where the time goes.

`way` lists the hops of a way from the product's graph, `closed_form` adds them up, `cases` says which ways there are,
`measure` simulates them, `tables` and `files` show the result, `command` reads the words of the command line.
"""
