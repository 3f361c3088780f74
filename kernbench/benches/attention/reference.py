"""Dense attention in float64, in plain numpy: what the results of the kernels are compared with."""

import numpy as np

from runtime.language.value import Array

F16_TOLERANCE = 1e-3
"""Largest absolute difference of a kernel with float16 operands from these results."""


def attention(q: Array, k: Array, v: Array, *, causal: bool = False) -> Array:
    """softmax(q k^T / sqrt(depth)) v of one head, in float64.

    `q` is (queries, depth), `k` and `v` are (keys, depth). With `causal` the last query sees all
    keys, and each query before it one key less.
    """
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(q.shape[1])
    if causal:
        hidden = np.triu(np.ones(scores.shape, bool), 1 + len(k) - len(q))
        scores = np.where(hidden, -np.inf, scores)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ v.astype(np.float64)


def grouped_attention(q: Array, k: Array, v: Array, *, causal: bool = False) -> Array:
    """Attention of query heads in groups: head h uses the keys and values of head h // group.

    `q` is (heads, queries, depth), `k` and `v` are (KV heads, keys, depth); `group` is heads / KV
    heads.
    """
    group = len(q) // len(k)
    return np.stack(
        [
            attention(queries, k[head // group], v[head // group], causal=causal)
            for head, queries in enumerate(q)
        ]
    )
