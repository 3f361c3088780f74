"""`ccl-algorithms`: the times of collectives by algorithm, and the selection tables of `ccl.yaml`.

`measurement` simulates and checks one call; `selection` is the rule that makes the tables.
"""
