"""`milestone-1h-gemm`: stage times, utilisation and bounds of matrix products on one PE.

`theory` has the products and their bounds.
"""
