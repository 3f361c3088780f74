"""The kernels of operators of PyTorch, in the language of `runtime.language.tl`."""
