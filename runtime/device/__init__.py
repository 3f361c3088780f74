"""The device of a rank: memory, launches, collectives, and one set of kernels.

Its faces are `runtime.torch`, the small torch, and the device `ahbm` of PyTorch
(`kernbench.torch_backend`). It imports neither.
"""
