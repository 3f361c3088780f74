"""Algorithms: a module each, with the kernels of the collectives that it has.

A kernel has the name of its collective. It gets the pointer to its PE's shard, a number of
elements, what the collective needs besides, and what `arguments(group, itemsize)` of its module
returns:

    all_reduce(shard, numel, op, *arguments)
    reduce(shard, numel, op, root, *arguments)
    broadcast(shard, numel, root, *arguments)
    all_gather(shard, numel, outputs, *arguments)
    all_gather_into_tensor(shard, numel, output, *arguments)
    reduce_scatter_tensor(shard, numel, op, output, *arguments)
    all_to_all_single(shard, numel, output, *arguments)

`op` is a `ReduceOp`, `root` a rank, an output a pointer to the same PE's shard of the tensor that
is written. Where a tensor is taken apart or put together, `numel` counts the elements of one part.
A module need not have all of them, and nothing else in it may have such a name.
"""
