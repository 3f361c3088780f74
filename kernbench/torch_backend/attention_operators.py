"""`scaled_dot_product_attention` as one flash kernel, which stores no matrix of scores.

Blocks of queries are dealt over the PEs: each head to equal numbers of PEs, where heads are fewer
than PEs, so that with a causal mask their sums of keys are nearly equal. With a mask of the
program, dropout, or head sizes beyond the scratch, attention is its products and its softmax, as it
is in the gradient: that computes the scores again.
"""

from typing import Any, NamedTuple

import torch

from kernbench.benches.attention.flash import BlockShape
from kernbench.torch_backend.kernels.attention import AttentionLayout, HeadQueries, attend
from kernbench.torch_backend.launches import launched, pointer_of, window_of
from kernbench.torch_backend.operators import CALLS
from kernbench.torch_backend.storages import storages
from runtime.core.requests import PerPe

_NAME = "scaled_dot_product_attention"
_TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
_ROWS, _WIDTH = (64, 32, 16), 320
"""The queries of a block, of which the greatest number that occupies all PEs is chosen, and most of
its keys.
"""


class _AttentionCall(NamedTuple):
    is_causal: bool
    scale: float
    enable_gqa: bool


def register_attention(library: torch.library.Library) -> None:
    """Add the operator to a library: with gradients and without."""
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        library.impl(_NAME, _attention, key)


def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    factor = (q.shape[-1] or 1) ** -0.5 if scale is None else float(scale)
    options = _AttentionCall(is_causal, factor, enable_gqa)
    if attn_mask is not None or dropout_p or not _is_supported(q, k, v, options):
        return torch.ops.aten._scaled_dot_product_attention_math(  # noqa: SLF001 - PyTorch's own form
            q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )[0]
    if torch.is_grad_enabled() and any(each.requires_grad for each in (q, k, v)):
        return _Attention.apply(q, k, v, options)
    return _flash(q, k, v, options)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        context: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: _AttentionCall
    ) -> torch.Tensor:
        context.save_for_backward(q, k, v)
        context.options = options
        return _flash(q, k, v, options)

    @staticmethod
    def backward(context: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        options = context.options
        operands = [each.detach().requires_grad_() for each in context.saved_tensors]
        with torch.enable_grad():
            out, _ = torch.ops.aten._scaled_dot_product_attention_math(  # noqa: SLF001
                *operands,
                is_causal=options.is_causal,
                scale=options.scale,
                enable_gqa=options.enable_gqa,
            )
        return (*torch.autograd.grad(out, operands, grad), None)


def _is_supported(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: _AttentionCall
) -> bool:
    """Whether the flash kernel takes these operands; errors of shapes are those of PyTorch."""
    operands = (q, k, v)
    if any(type(each) not in {torch.Tensor, torch.nn.Parameter} for each in operands):
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
        and _block_shape(q, keys) is not None
    )


def _block_shape(q: torch.Tensor, keys: int) -> BlockShape | None:
    """The blocks of the scores; None where none fits the scratch."""
    state = storages().state
    batch, heads, queries, depth = q.shape
    pes = state.topology.cubes * state.topology.pes_per_cube
    rows = next(
        (each for each in _ROWS if each <= queries and batch * heads * queries >= each * pes),
        min(queries, _ROWS[-1]),
    )
    size = q.itemsize
    of_rows = rows * (3 * depth * size + 12 * (depth + 2) + 4 * rows + 8)
    of_key = 6 * depth * size + rows * (12 + 2 * size) + size
    left = state.topology.kernel_scratch_bytes - of_rows - (1 << 14)
    width = min(left // of_key // rows * rows, max(_WIDTH // rows, 1) * rows)
    return BlockShape(rows, min(width, -(-keys // rows) * rows), depth) if width > 0 else None


def _flash(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: _AttentionCall
) -> torch.Tensor:
    CALLS[_NAME] += 1
    batch, heads, queries, depth = q.shape
    # Of one token all heads are neighbours in memory, as the projection behind attention reads it.
    out = torch.empty((batch, queries, heads, depth), dtype=q.dtype, device=q.device)
    tensors = [each if each.stride(3) == 1 else each.contiguous() for each in (q, k, v)]
    tensors = [each.detach() for each in tensors]
    result = out.transpose(1, 2)
    shape = _block_shape(q, k.shape[2])
    assert shape is not None, "checked before"
    topology = storages().state.topology
    shares = max(1, topology.cubes * topology.pes_per_cube // (batch * heads))
    parts = {
        divmod(pe, topology.pes_per_cube): _grouped(
            blocks,
            (*tensors, result),
            shape,
            (pe % shares, shares),
            is_causal=options.is_causal,
        )
        for pe, blocks in _dealt(batch * heads, queries, shape, options).items()
    }
    pitches = [each.stride(2) if each.shape[2] > 1 else depth for each in (*tensors, result)]
    layout = AttentionLayout(
        (pitches[0], pitches[1], pitches[2]), pitches[3], options.scale, options.is_causal
    )
    windows = [window_of(each) for each in (*tensors, result)]
    arguments = (PerPe(parts), layout, *map(pointer_of, windows))
    launched(_NAME, attend, arguments, windows, list(parts))
    return result


_Block = tuple[int, int]
"""The number of a head, and the first query."""


def _dealt(
    heads: int, queries: int, shape: BlockShape, options: _AttentionCall
) -> dict[int, list[_Block]]:
    """The blocks of each PE, by its number, of nearly equal work."""
    topology = storages().state.topology
    pes, rows = topology.cubes * topology.pes_per_cube, shape.rows
    starts = range(0, queries, rows)
    dealt: dict[int, list[_Block]] = {}
    # Whole heads, as many as PEs, while there are; each of the others over several PEs.
    whole = heads // pes * pes
    for head in range(whole):
        dealt.setdefault(head % pes, []).extend((head, start) for start in starts)
    shares = min(pes // (heads - whole), len(starts)) if heads > whole else 0
    for head in range(whole, heads):
        first = (head - whole) * shares
        for number, start in enumerate(reversed(starts)):
            # There and back again: with a causal mask the later blocks have more keys.
            turn, place = divmod(number, shares)
            side = shares - 1 - place if turn % 2 and options.is_causal else place
            dealt.setdefault(first + side, []).append((head, start))
    return dict(sorted(dealt.items()))


def _grouped(
    blocks: list[_Block],
    tensors: tuple[torch.Tensor, ...],
    shape: BlockShape,
    turn: tuple[int, int],
    *,
    is_causal: bool,
) -> tuple[tuple[BlockShape, tuple[HeadQueries, ...]], ...]:
    """The blocks of a PE by their numbers of queries, full ones first; `turn` is the number of the
    PE among those with the same head.
    """
    q, k, _, _ = tensors
    queries, keys, heads = q.shape[2], k.shape[2], q.shape[1]
    group = heads // k.shape[1]
    found: dict[int, list[HeadQueries]] = {}
    for number, start in blocks:
        batch, head = divmod(number, heads)
        rows = min(shape.rows, queries - start)
        q_first, out_first = (
            batch * each.stride(0) + head * each.stride(1) + start * each.stride(2)
            for each in (tensors[0], tensors[3])
        )
        k_first, v_first = (
            batch * each.stride(0) + head // group * each.stride(1) for each in tensors[1:3]
        )
        seen = start + rows if is_causal else keys
        # The PEs that read the same keys begin with different ones, which lie on other PEs.
        share = head % group * turn[1] + turn[0]
        found.setdefault(rows, []).append(
            HeadQueries(
                q=q_first,
                k=k_first,
                v=v_first,
                out=out_first,
                keys=seen,
                start=seen * share // (group * turn[1]),
            )
        )
    return tuple(
        (shape._replace(rows=rows), tuple(found[rows])) for rows in sorted(found, reverse=True)
    )
