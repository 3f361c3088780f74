"""The algorithms of the collectives: one module each, with a kernel for every collective that it
supports.

A kernel has the name of its collective. Its arguments are the pointer to its PE's shard, a number
of elements, the operands of the collective, and the tuple that `arguments(group, itemsize)` of its
module returns:

    all_reduce(shard, numel, op, *arguments)
    reduce(shard, numel, op, root, *arguments)
    broadcast(shard, numel, root, *arguments)
    all_gather(shard, numel, outputs, *arguments)
    all_gather_into_tensor(shard, numel, outputs, *arguments)
    reduce_scatter_tensor(inputs, numel, op, output, *arguments)
    all_to_all_single(inputs, numel, outputs, *arguments)
    all_to_all(parts_sent, parts_received, *arguments)
    gather(shard, numel, outputs, root, *arguments)
    scatter(inputs, numel, output, root, *arguments)

`op` is a `ReduceOp`, `root` a rank of the group. `inputs` and `outputs` are tuples of pointers by
rank, to the elements that this PE moves of the part for that rank or from it; `numel` is their
number in one part. Only the root of `gather` and of `scatter` has outputs and inputs: elsewhere the
tuple is empty. The parts of `all_to_all` are tuples of (pointer, number of elements) by rank. A
module may leave out collectives; nothing else in it may have one of these names.
"""
