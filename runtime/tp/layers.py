"""Linear layers whose weight is divided over the ranks of the tensor parallel group.

A weight is (in, out), as `x @ weight` uses it, and lies column by column on the PEs of the device:
a PE reads the weights of its own columns from its own memory. Layers have no gradients; a backward
pass multiplies with `transpose_input` and `transpose_other` (`runtime.device.operations.matmul`).
"""

from collections.abc import Callable

from runtime.core.dtypes import DType, float16
from runtime.device.operations.matmul import matmul
from runtime.device.rank.properties import get_device_properties
from runtime.model.placement import ONE_PE, DPPolicy
from runtime.torch.tensors.creation import zeros
from runtime.torch.tensors.tensor import Tensor
from runtime.tp.parallel_state import get_tensor_model_parallel_world_size
from runtime.tp.regions import (
    copy_to_tp_region,
    divided,
    gather_from_tp_region,
    reduce_from_tp_region,
    scatter_to_tp_region,
)

InitMethod = Callable[..., Tensor]
"""A constructor such as `torch.zeros`: `init_method(rows, columns, dtype=..., dp=...)`."""


class ColumnParallelLinear:
    """y = x @ weight + bias, with the columns of `weight` divided over the ranks.

    `weight` is (in_features, out_features / ranks) and `bias` (out_features / ranks), both written
    by `copy_`; every rank has the whole x (..., in_features). The result has the rank's own
    columns, or all of them with `gather_output`. `ValueError` if the ranks do not divide
    `out_features`.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = False,  # noqa: FBT001, FBT002 - as in PyTorch
        gather_output: bool = False,  # noqa: FBT001, FBT002
        *,
        dtype: DType = float16,
        init_method: InitMethod = zeros,
    ) -> None:
        size = get_tensor_model_parallel_world_size()
        own = divided(out_features, size, "out_features")
        self.in_features, self.out_features = in_features, out_features
        self.gather_output = gather_output
        placement = weight_placement(own)
        self.weight = init_method(in_features, own, dtype=dtype, dp=placement)
        self.bias = zeros(own, dtype=dtype, dp=placement) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """The rank's columns of the product, or all columns."""
        # A column of the product needs one column of the weight alone: no rank waits for another
        # (M. Shoeybi et al., Megatron-LM, 2019).
        y = matmul(copy_to_tp_region(x), self.weight, bias=self.bias)
        return gather_from_tp_region(y) if self.gather_output else y

    forward = __call__

    def __repr__(self) -> str:
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        options = f"bias={self.bias is not None}, gather_output={self.gather_output}"
        return f"ColumnParallelLinear({sizes}, {options})"


class RowParallelLinear:
    """y = x @ weight + bias, with the rows of `weight` divided over the ranks.

    `weight` is (in_features / ranks, out_features), `bias` (out_features) is equal on all ranks,
    both are written by `copy_`. x has the rank's own columns, or all of them with
    `input_is_parallel=False`. The products of the ranks are added up in the type of the layer, and
    the bias is added once, to the sum; every rank gets the same elements. `ValueError` if the ranks
    do not divide `in_features`.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = False,  # noqa: FBT001, FBT002 - as in PyTorch
        input_is_parallel: bool = True,  # noqa: FBT001, FBT002
        *,
        dtype: DType = float16,
        init_method: InitMethod = zeros,
    ) -> None:
        size = get_tensor_model_parallel_world_size()
        own = divided(in_features, size, "in_features")
        self.in_features, self.out_features = in_features, out_features
        self.input_is_parallel = input_is_parallel
        placement = weight_placement(out_features)
        self.weight = init_method(own, out_features, dtype=dtype, dp=placement)
        self.bias = zeros(out_features, dtype=dtype) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """The product with the whole weight, on every rank."""
        own = x if self.input_is_parallel else scatter_to_tp_region(x)
        # Each rank has some terms of every sum; the all-reduce adds the partial sums of all ranks.
        y = reduce_from_tp_region(matmul(own, self.weight))
        # Behind the all-reduce, which would otherwise add the bias once for each rank.
        return y if self.bias is None else y.add_(self.bias)

    forward = __call__

    def __repr__(self) -> str:
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        options = f"bias={self.bias is not None}, input_is_parallel={self.input_is_parallel}"
        return f"RowParallelLinear({sizes}, {options})"


def weight_placement(columns: int) -> DPPolicy:
    """Columns on as many PEs as divide them into whole tiles of the GEMM engine; of equal numbers
    of PEs, those of fewer cubes.
    """
    properties = get_device_properties()
    # A narrower part would leave columns of the GEMM engine idle in every step.
    tiles, rest = divmod(columns, properties.gemm_tile.n)
    counts = [
        (cubes * pes, -cubes)
        for cubes in range(1, properties.cubes + 1)
        for pes in range(1, properties.pes_per_cube + 1)
        if not rest and tiles and not tiles % (cubes * pes)
    ]
    count, fewest = max(counts, default=(1, -1))
    if count == 1:
        return ONE_PE
    return DPPolicy(
        cube="column_wise", pe="column_wise", num_cubes=-fewest, num_pes=count // -fewest
    )
