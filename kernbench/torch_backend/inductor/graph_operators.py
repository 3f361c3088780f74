"""Operators of graphs that Inductor compiles: what the device computes in fewer launches than their
parts. Each calls the kernels of the eager form.
"""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, islice
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.products.attention_blocks import AttentionCall
from kernbench.torch_backend.aten.products.attention_operators import (
    flash_gradients,
    flash_with_statistics,
)
from kernbench.torch_backend.aten.products.product_operators import products_together
from kernbench.torch_backend.inductor.epilogues import epilogue_of
from kernbench.torch_backend.launching.joined_launch import JoinedCall
from kernbench.torch_backend.runtime.pytorch_api import (
    CustomOpDef,
    custom_operator,
    register_gradient,
    register_shapes,
)
from runtime.device.products.joined_kernel import Epilogue

_OPTIONS = "bool is_causal, float scale, bool enable_gqa"


@cache
def graph_attention() -> CustomOpDef:
    """Attention: its result, and the statistics of rows that its gradient reads."""
    operator = custom_operator(
        "kernbench::attention",
        _attention,
        (),
        f"(Tensor q, Tensor k, Tensor v, Tensor? mask, {_OPTIONS}) -> (Tensor, Tensor)",
    )
    register_shapes(operator, _attention_shapes)
    register_gradient(operator, _attention_gradient, _keep_attention)
    return operator


@cache
def _graph_attention_backward() -> CustomOpDef:
    operator = custom_operator(
        "kernbench::attention_backward",
        _attention_backward,
        (),
        "(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor out, "
        f"Tensor statistics, {_OPTIONS}) -> (Tensor, Tensor, Tensor)",
    )
    register_shapes(operator, _gradient_shapes)
    return operator


def _gradient_shapes(_: Tensor, q: Tensor, k: Tensor, v: Tensor, *__: object) -> tuple[Tensor, ...]:
    return _by_tokens(q), _by_tokens(k), _by_tokens(v)


def _attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *options: Any
) -> tuple[Tensor, Tensor]:
    return flash_with_statistics((q, k, v), mask, AttentionCall(*options))


def _attention_backward(  # noqa: PLR0917 - the parameters of the operator
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    out: Tensor,
    statistics: Tensor,
    *options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    return flash_gradients((q, k, v, out, grad), mask, statistics, AttentionCall(*options))


def _by_tokens(x: Tensor) -> Tensor:
    """A tensor of the shape of `x` in which all heads of a token are neighbours."""
    batch, heads, tokens, depth = x.shape
    return x.new_empty((batch, tokens, heads, depth)).transpose(1, 2)


def _attention_shapes(q: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    rows = q.shape[0] * q.shape[1] * q.shape[2]
    return _by_tokens(q), q.new_empty((3, rows), dtype=torch.float32)


def _keep_attention(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, mask, *options = inputs
    ctx.options = options
    ctx.save_for_backward(q, k, v, mask, *output)


def _attention_gradient(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    gradients = _graph_attention_backward()(grad, *ctx.saved_tensors, *ctx.options)
    return (*gradients, *(None,) * (1 + len(ctx.options)))


@cache
def graph_products() -> CustomOpDef:
    """Independent sums of products in one launch; each takes the next `factors` of `a` and `b`.
    Those with the numbers `biased` have a bias; each has an epilogue or an empty text, and takes
    the next ones of `beside`.
    """
    operator = custom_operator(
        "kernbench::products",
        _products,
        (),
        "(Tensor[] a, Tensor[] b, int[] factors, Tensor[] biases, int[] biased, Tensor[] beside, "
        "str[] epilogues) -> Tensor[]",
    )
    register_shapes(operator, _product_shapes)
    return operator


def _products(  # noqa: PLR0917 - the parameters of the operator
    a: Sequence[Tensor],
    b: Sequence[Tensor],
    factors: Sequence[int],
    biases: Sequence[Tensor],
    biased: Sequence[int],
    beside: Sequence[Tensor],
    epilogues: Sequence[str],
) -> list[Tensor]:
    pairs, others = zip(a, b, strict=True), iter(beside)
    rows, calls = dict(zip(biased, biases, strict=True)), list[JoinedCall]()
    for number, (count, text) in enumerate(zip(factors, epilogues, strict=True)):
        epilogue, own = epilogue_of(text), list(islice(pairs, count))
        calls.append(
            JoinedCall(
                factors=own,
                bias=rows.get(number),
                epilogue=epilogue,
                beside=[] if epilogue is None else list(islice(others, epilogue.beside)),
                outs=_results(*own[0], epilogue),
            )
        )
    products_together(calls)
    return [out for call in calls for out in call.outs]


def _product_shapes(
    a: Sequence[Tensor], b: Sequence[Tensor], factors: Sequence[int], *rest: Sequence[Any]
) -> list[Tensor]:
    firsts = accumulate(factors, initial=0)
    return [
        out
        for first, text in zip(firsts, rest[-1], strict=False)
        for out in _results(a[first], b[first], epilogue_of(text))
    ]


def _results(a: Tensor, b: Tensor, epilogue: Epilogue | None) -> list[Tensor]:
    matrix, row = (a.shape[0], b.shape[1]), (b.shape[1],)
    sums = (False,) if epilogue is None else epilogue.sums
    return [a.new_empty(row if is_sum else matrix) for is_sum in sums]
