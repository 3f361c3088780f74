"""The algorithms of the collectives: one module each, with a kernel for every collective that it
supports.

A kernel has the name of its collective. Its arguments are the pointer to its PE's shard, a number
of elements, the operands of the collective, and the tuple that `arguments(group, itemsize)` of its
module returns:

    all_reduce(shard, numel, op, *arguments)
    reduce(shard, numel, op, root, *arguments)
    broadcast(shard, numel, root, *arguments)
    all_gather(shard, numel, outputs, *arguments)
    all_gather_into_tensor(shard, numel, output, *arguments)
    reduce_scatter_tensor(shard, numel, op, output, *arguments)
    all_to_all_single(shard, numel, output, *arguments)

`op` is a `ReduceOp`, `root` a rank of the group, an output a pointer to the same PE's shard of the
output tensor. Where a tensor is split into parts or concatenated of parts, `numel` counts the
elements of one part. A module may leave out collectives; nothing else in it may have one of these
names.
"""
