"""A decoder layer in float64, in plain numpy: what the result of the kernels is compared with."""

import numpy as np

from kernbench.benches.attention.reference import grouped_attention
from kernbench.studies.llama70b_layer.projection import EPSILON
from kernbench.studies.llama70b_layer.shape import LayerShape
from kernbench.studies.llama70b_layer.weights import LayerInputs, LayerWeights
from runtime.language.value import Array


def layer_result(shape: LayerShape, weights: LayerWeights, inputs: LayerInputs) -> Array:
    """The result (tokens, hidden) of a whole layer."""
    exact = LayerWeights(
        (weights.gains[0].astype(np.float64), weights.gains[1].astype(np.float64)),
        *(matrix.astype(np.float64) for matrix in weights[1:]),
    )
    x = inputs.x.astype(np.float64)
    x += _attention(shape, _normalised(x, exact.gains[0]) @ exact.qkv, inputs) @ exact.output
    hidden = _normalised(x, exact.gains[1])
    gate = hidden @ exact.gate
    return x + (gate / (1 + np.exp(-gate)) * (hidden @ exact.up)) @ exact.down


def _normalised(x: Array, gain: Array) -> Array:
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + EPSILON) * gain


def _attention(shape: LayerShape, qkv: Array, inputs: LayerInputs) -> Array:
    heads = qkv.reshape(shape.tokens, -1, shape.depth).transpose(1, 0, 2)
    q, k, v = np.split(heads, [shape.heads, shape.heads + shape.kv_heads])
    q, k = (_rotated(each, shape) for each in (q, k))
    if shape.is_decode:
        k, v = (
            np.concatenate([cache[:, :-1].astype(np.float64), new], 1)
            for cache, new in ((inputs.keys, k), (inputs.values, v))
        )
    return grouped_attention(q, k, v, causal=True).transpose(1, 0, 2).reshape(shape.tokens, -1)


def _rotated(heads: Array, shape: LayerShape) -> Array:
    """Pairs of adjacent columns as complex numbers, turned by an angle for each position."""
    positions = np.arange(shape.context - shape.tokens, shape.context)
    angles = np.outer(positions, 10000.0 ** (-np.arange(0, shape.depth, 2) / shape.depth))
    turned = (heads[..., 0::2] + 1j * heads[..., 1::2]) * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], -1).reshape(heads.shape)
