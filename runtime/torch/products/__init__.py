"""Matrix products of tensors: their plan, their operands, and the kernel that computes them."""
