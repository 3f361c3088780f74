"""Tensor parallel layers as in Megatron: a matrix product divided over the ranks of a group.

M. Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model
parallelism", 2019. A `ColumnParallelLinear` followed by a `RowParallelLinear` needs one all-reduce.
"""

from runtime.tp.layers import ColumnParallelLinear, RowParallelLinear
from runtime.tp.parallel_state import (
    destroy_model_parallel,
    get_data_parallel_group,
    get_data_parallel_rank,
    get_data_parallel_world_size,
    get_tensor_model_parallel_group,
    get_tensor_model_parallel_rank,
    get_tensor_model_parallel_world_size,
    initialize_model_parallel,
    model_parallel_is_initialized,
)
from runtime.tp.regions import (
    copy_to_tp_region,
    gather_from_tp_region,
    reduce_from_tp_region,
    scatter_to_tp_region,
)

__all__ = [
    "ColumnParallelLinear",
    "RowParallelLinear",
    "copy_to_tp_region",
    "destroy_model_parallel",
    "gather_from_tp_region",
    "get_data_parallel_group",
    "get_data_parallel_rank",
    "get_data_parallel_world_size",
    "get_tensor_model_parallel_group",
    "get_tensor_model_parallel_rank",
    "get_tensor_model_parallel_world_size",
    "initialize_model_parallel",
    "model_parallel_is_initialized",
    "reduce_from_tp_region",
    "scatter_to_tp_region",
]
