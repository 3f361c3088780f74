"""`moe-all-to-all`: the exchanges of a mixture of experts, by the skew of the routing.

`routing` has the experts of each token, drawn or from a file.
"""
