"""Operators, comparisons and reductions of tensors, and the kernels that compute them."""
