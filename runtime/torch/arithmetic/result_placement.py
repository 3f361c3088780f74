"""Where the result of an operation lies: where the operand of its shape lies, shard by shard."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from runtime.core.dtypes import DType
from runtime.device.memory.storage import Storage, Window
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.rank.rank_state import running_rank
from runtime.model.placement import ShardSpec
from runtime.torch.tensors.creation import empty
from runtime.torch.tensors.tensor import Tensor


def placed(tensors: Sequence[StoredTensor], shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A new tensor that lies where the first operand of its shape lies, which for operands that
    are not flat is the first of those.
    """
    whole = [each for each in tensors if each.shape == shape]
    if not whole:
        return empty(shape, dtype=dtype)
    return placed_like(next((each for each in whole if not each.is_flat), whole[0]), shape, dtype)


def placed_like(model: StoredTensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A new tensor with the shards of another one, in its own type."""
    state, old, new = running_rank(), model.itemsize, dtype.itemsize

    def resized(spec: ShardSpec) -> ShardSpec:
        return replace(
            spec,
            offset_bytes=spec.offset_bytes // old * new,
            nbytes=spec.nbytes // old * new,
        )

    state.tensors += 1
    specs = [resized(shard.spec) for shard in model.shards]
    allocation = state.memory.allocate(specs, prod(shape) * new)
    storage = Storage(f"t{state.tensors}{list(shape)}", allocation)
    window = Window(storage, storage.address, storage.shards, model.is_flat)
    return Tensor(state, window, shape=shape, dtype=dtype, policy=model.policy, layout=model.layout)
