"""`scaled_dot_product_attention` as one flash kernel, and its gradient as two: no matrix of scores
is stored.

Masks of the program, bools or numbers, may have any shape that broadcasts. With dropout, a mask
that needs a gradient, a causal mask of fewer queries than keys, or head sizes beyond the scratch,
attention is its products and its softmax; so it is where a gradient needs a gradient of its own.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import CALLS
from kernbench.torch_backend.aten.products.attention_blocks import (
    AttentionCall,
    HeadRows,
    ScratchBytes,
    block_shape,
    by_heads,
    dealt,
    pitch,
    place,
    with_rows,
)
from kernbench.torch_backend.aten.products.attention_gradient import gradients, has_gradient_kernels
from kernbench.torch_backend.aten.products.attention_shards import are_distributed, on_shards
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.frame_hook import untraced_methods
from kernbench.torch_backend.runtime.pytorch_api import applied, attention_of_products, implement
from runtime.core.requests import PerPe
from runtime.device.kernels.attention.attend import AttentionLayout, HeadQueries, attend
from runtime.device.kernels.attention.flash import BlockShape

_NAME = "scaled_dot_product_attention"
_TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
_PLAIN = frozenset({Tensor, torch.nn.Parameter})


class GraphAttention(NamedTuple):
    """Attention in a graph that is traced: the function that adds it to the graph, and the class of
    the tensors of the trace.
    """

    added: Callable[..., tuple[Tensor, Tensor]]
    traced: type


GRAPH_ATTENTION: ContextVar[GraphAttention | None] = ContextVar("graph_attention", default=None)
"""Set while a graph is traced in which attention is one operator."""


def register_attention(library: torch.library.Library) -> None:
    """Add the operator to a library: with gradients and without."""
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        implement(library, _NAME, _attention, key)


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if attn_mask is None and are_distributed(given := (q, k, v)):
        options = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
        return on_shards(partial(_attention, dropout_p=dropout_p, **options), given)
    factor = (q.shape[-1] or 1) ** -0.5 if scale is None else float(scale)
    options = AttentionCall(is_causal, factor, enable_gqa)
    graph = GRAPH_ATTENTION.get()
    if dropout_p or not (_is_supported(q, k, v, options) and _takes(q, k, attn_mask, options)):
        return _composed(q, k, v, attn_mask, options, dropout_p)
    mask = None if attn_mask is None else _expanded(attn_mask, q, k)
    if graph is not None and type(q) is graph.traced:
        return graph.added(q, k, v, mask, *options)[0]
    if torch.is_grad_enabled() and any(each.requires_grad for each in (q, k, v)):
        return applied(_Attention, q, k, v, mask, options)
    return _flash(q, k, v, mask, options, None)


def _composed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    options: AttentionCall,
    dropout: float = 0.0,
) -> Tensor:
    """Products and a softmax: PyTorch's own form, which adds the mask to the scores."""
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, -torch.inf)
    return attention_of_products(
        *(q, k, v, mask, dropout, options.is_causal),
        scale=options.scale,
        enable_gqa=options.enable_gqa,
    )[0]


@untraced_methods
class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, options: AttentionCall
    ) -> Tensor:
        ctx.options, ctx.is_flash = options, has_gradient_kernels(q, k, mask)
        if not ctx.is_flash:
            ctx.save_for_backward(q, k, v, mask, None, None)
            return _flash(q, k, v, mask, options, None)
        out, statistics = flash_with_statistics((q, k, v), mask, options)
        ctx.save_for_backward(q, k, v, mask, out, statistics)
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grad_outputs
        options = ctx.options
        q, k, v, mask, out, statistics = ctx.saved_tensors
        has_graph = torch.is_grad_enabled()
        if ctx.is_flash and not has_graph and type(grad) in _PLAIN:
            operands = (q, k, v, out, grad)
            return (*flash_gradients(operands, mask, statistics, options), None, None)
        if not has_graph:
            q, k, v = (each.detach().requires_grad_() for each in (q, k, v))
        given = (q, k, v)
        with torch.enable_grad():
            result = _composed(q, k, v, mask, options)
            needed = [each for each in given if each.requires_grad]
            computed = iter(torch.autograd.grad(result, needed, grad, create_graph=has_graph))
        return (*(next(computed) if each.requires_grad else None for each in given), None, None)


def flash_with_statistics(
    operands: Sequence[Tensor], mask: Tensor | None, options: AttentionCall
) -> tuple[Tensor, Tensor]:
    """The result of attention, and the numbers of each row that its gradient reads."""
    q, k, v = operands
    # Two numbers of each row from here, and one of the gradient.
    rows = q.shape[0] * q.shape[1] * q.shape[2]
    statistics = torch.empty((3, rows), dtype=torch.float32, device=q.device)
    return _flash(q, k, v, mask, options, statistics), statistics


def flash_gradients(
    operands: Sequence[Tensor], mask: Tensor | None, statistics: Tensor, options: AttentionCall
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v, from q, k, v, the result, its gradient and the statistics."""
    CALLS[f"{_NAME}_backward"] += 1
    return gradients(operands, mask, statistics, options)


def _is_plain(x: Tensor) -> bool:
    graph = GRAPH_ATTENTION.get()
    if graph is None or type(x) is not graph.traced:
        return type(x) in _PLAIN
    # The blocks of the kernels follow from lengths, and gradients in a graph are kernels, too.
    return all(type(each) is int for each in x.shape)


def _is_supported(q: Tensor, k: Tensor, v: Tensor, options: AttentionCall) -> bool:
    """Whether the flash kernel takes these operands; errors of shapes are those of PyTorch."""
    operands = (q, k, v)
    if not all(map(_is_plain, operands)):
        return False
    if any(each.dim() != 4 or not each.numel() or each.dtype != q.dtype for each in operands):
        return False
    (batch, heads, queries, depth), (_, groups, keys, _) = q.shape, k.shape
    return (
        q.dtype in _TYPES
        and k.shape == v.shape == (batch, groups, keys, depth)
        and (heads == groups or (options.enable_gqa and heads % groups == 0))
        and (queries == keys or not options.is_causal)
        and options.scale > 0
    )


def _takes(q: Tensor, k: Tensor, mask: Tensor | None, options: AttentionCall) -> bool:
    """Whether the flash kernel takes the mask, and its blocks fit the scratch."""
    if mask is not None:
        shape = (*q.shape[:3], k.shape[2])
        lengths = zip(reversed(mask.shape), reversed(shape), strict=False)
        if (
            not _is_plain(mask)
            or options.is_causal
            or mask.requires_grad
            or mask.dtype not in {torch.bool, torch.float32, q.dtype}
            or mask.device != q.device
            or mask.dim() > len(shape)
            or any(given not in {1, length} for given, length in lengths)
        ):
            return False
    if _blocks(q, k, mask) is None:
        return False
    return GRAPH_ATTENTION.get() is None or has_gradient_kernels(q, k, mask)


def _expanded(mask: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """A mask as a view with an element for each score; those of a query are neighbours."""
    if mask.dim() and mask.shape[-1] > 1 and mask.stride(-1) > 1:
        mask = mask.contiguous()
    return mask.detach().expand(*q.shape[:3], k.shape[2])


def _blocks(q: Tensor, k: Tensor, mask: Tensor | None) -> BlockShape | None:
    batch, heads, queries, depth = q.shape
    scratch = ScratchBytes.of_attention(q, mask)
    return block_shape(batch * heads, queries, k.shape[2], depth, scratch)


def _flash(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    options: AttentionCall,
    statistics: Tensor | None,
) -> Tensor:
    CALLS[_NAME] += 1
    batch, heads, queries, depth = q.shape
    # Of one token all heads are neighbours in memory, as the projection behind attention reads it.
    out = torch.empty((batch, queries, heads, depth), dtype=q.dtype, device=q.device)
    result = out.transpose(1, 2)
    shape = _blocks(q, k, mask)
    assert shape is not None, "checked before"
    tensors = [with_rows(q), *by_heads((k, v), heads, -(-queries // shape.rows))]
    blocks = dealt(batch * heads, queries, shape.rows, is_causal=options.is_causal)
    parts = {
        pe: _grouped(given, (*tensors, result), mask, shape, is_causal=options.is_causal)
        for pe, given in blocks.items()
    }
    pitches = [pitch(each) for each in (*tensors, result)]
    layout = AttentionLayout(
        pitches=(pitches[0], pitches[1], pitches[2]),
        out_pitch=pitches[3],
        scale=options.scale,
        is_causal=options.is_causal,
        mask_strides=(0, 0) if mask is None else (mask.stride(2), mask.stride(3)),
        rows=batch * heads * queries,
    )
    windows = [
        None if each is None else window_of(each) for each in (*tensors, result, mask, statistics)
    ]
    pointers = [None if each is None else pointer_of(each) for each in windows]
    used = [each for each in windows if each is not None]
    launched(_NAME, attend, (PerPe(parts), layout, *pointers), used, list(parts))
    return result


def _grouped(
    blocks: list[HeadRows],
    tensors: tuple[Tensor, ...],
    mask: Tensor | None,
    shape: BlockShape,
    *,
    is_causal: bool,
) -> tuple[tuple[BlockShape, tuple[HeadQueries, ...]], ...]:
    """The blocks of a PE by their numbers of queries, full ones first."""
    q, k, v, out = tensors
    queries, keys, heads = q.shape[2], k.shape[2], q.shape[1]
    group = heads // k.shape[1]
    queries_of: dict[int, list[HeadQueries]] = {}
    for block in blocks:
        batch, head = divmod(block.head, heads)
        seen = block.start + block.rows if is_causal else keys
        # The PEs that read the same keys begin with different ones, which lie on other PEs.
        share = head % group * block.shares + block.share
        queries_of.setdefault(block.rows, []).append(
            HeadQueries(
                q=place(q, batch, head, block.start),
                k=place(k, batch, head // group, 0),
                v=place(v, batch, head // group, 0),
                out=place(out, batch, head, block.start),
                mask=0 if mask is None else place(mask, batch, head, block.start),
                row=block.head * queries + block.start,
                keys=seen,
                start=seen * share // (group * block.shares),
            )
        )
    return tuple(
        (shape._replace(rows=rows), tuple(queries_of[rows]))
        for rows in sorted(queries_of, reverse=True)
    )
