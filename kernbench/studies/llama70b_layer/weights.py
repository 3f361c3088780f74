"""The elements of a layer, random or none, and their order in the memory of a SIP."""

from typing import NamedTuple

import numpy as np

from kernbench.benches.decoder_layer.shape import LayerShape, Projection
from runtime.language.value import Array

SEED = 1
"""Seed of the elements; times do not depend on it."""


class LayerWeights(NamedTuple):
    """The matrices of a layer or of the part of a rank, and the gains of its two norms.

    `qkv` is (hidden, columns of all heads: queries, keys, values), `output` (columns of queries,
    hidden), `gate` and `up` (hidden, inner), `down` (inner, hidden).
    """

    gains: tuple[Array, Array]
    qkv: Array
    output: Array
    gate: Array
    up: Array
    down: Array

    def of_rank(self, shape: LayerShape, rank: int, ranks: int) -> "LayerWeights":
        """The part of a rank: whole groups of heads, and columns of the MLP."""
        bounds = [shape.heads * shape.depth, (shape.heads + shape.kv_heads) * shape.depth]
        return self._replace(
            qkv=np.concatenate(
                [np.split(each, ranks, 1)[rank] for each in np.split(self.qkv, bounds, 1)], 1
            ),
            output=np.split(self.output, ranks)[rank],
            gate=np.split(self.gate, ranks, 1)[rank],
            up=np.split(self.up, ranks, 1)[rank],
            down=np.split(self.down, ranks)[rank],
        )


class LayerInputs(NamedTuple):
    """`x` (tokens, hidden); the cache of keys and values (KV head, token, depth), whose last token
    is the new one of a decode.
    """

    x: Array
    keys: Array
    values: Array

    def of_rank(self, rank: int, ranks: int) -> "LayerInputs":
        """The part of a rank: its heads of the cache."""
        return self._replace(
            keys=np.split(self.keys, ranks)[rank], values=np.split(self.values, ranks)[rank]
        )


def random_weights(shape: LayerShape) -> LayerWeights:
    """Random matrices whose products have a variance near that of their operands."""
    draw = np.random.default_rng(SEED).standard_normal

    def matrix(rows: int, columns: int) -> Array:
        return (draw((rows, columns)) / np.sqrt(rows)).astype(np.float16)

    first, second = (1 + draw((2, shape.hidden)) / 8).astype(np.float16)
    return LayerWeights(
        gains=(first, second),
        qkv=matrix(shape.hidden, shape.qkv),
        output=matrix(shape.heads * shape.depth, shape.hidden),
        gate=matrix(shape.hidden, shape.inner),
        up=matrix(shape.hidden, shape.inner),
        down=matrix(shape.inner, shape.hidden),
    )


def random_inputs(shape: LayerShape) -> LayerInputs:
    """Elements of variance 1."""
    draw = np.random.default_rng(SEED + 1).standard_normal
    tokens, cached = (shape.tokens, shape.hidden), shape.context if shape.is_decode else 0
    cache = (shape.kv_heads, cached, shape.depth)
    return LayerInputs(*(draw(each).astype(np.float16) for each in (tokens, cache, cache)))


def packed(weight: Array, shape: Projection) -> Array:
    """The elements of a weight in the order of the memory: cube by cube, PE by PE, panel by panel;
    panels are row-major.
    """
    parts = list[Array]()
    for cube in range(shape.cubes):
        for pe in range(shape.pes):
            own = weight[pe * shape.k :, cube * shape.n :][: shape.k, : shape.n]
            for chunk in np.split(own, shape.n // shape.chunk, 1):
                parts += [
                    chunk[:, panel * shape.width :][:, : shape.width].ravel()
                    for panel in shape.panels
                ]
    return np.concatenate(parts)


def in_panels(rows: Array, width: int) -> Array:
    """The elements of (tokens, columns) in the order of `Activations`."""
    return rows.reshape(len(rows), -1, width).transpose(1, 0, 2).ravel()


def in_rows(panels: Array, tokens: int, width: int) -> Array:
    """The (tokens, columns) whose elements are in the order of `Activations`."""
    return panels.reshape(-1, tokens, width).transpose(1, 0, 2).reshape(tokens, -1)


def interleaved(even: Array, odd: Array) -> Array:
    """A matrix whose even columns are those of one matrix, and its odd ones those of another."""
    return np.stack([even, odd], 2).reshape(len(even), -1)


def in_parts(table: Array, shape: Projection) -> Array:
    """A value for each element of the result (tokens, columns) in the order of the parts that PEs
    add up: (cube, PE, step).
    """
    panels, rows, columns = shape.part
    parts = [
        table[token : token + rows, column : column + panels * columns]
        for cube in range(shape.cubes)
        for pe in range(shape.pes)
        for block in range(0, shape.tokens, shape.block)
        for chunk in shape.chunks
        for token, column in [shape.first(block, chunk, cube, pe)]
    ]
    return np.concatenate([in_panels(each, columns) for each in parts])


def rotations(shape: LayerShape) -> tuple[Array, Array]:
    """Cosines and sines (tokens, columns), the same for both columns of a pair; values are not
    rotated.

    J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021: pair i of a
    head at position t is rotated by t * 10000^(-2i / depth).
    """
    positions = np.arange(shape.context - shape.tokens, shape.context)
    frequencies = 10000.0 ** (-np.arange(0, shape.depth, 2) / shape.depth)
    angles = np.zeros((shape.tokens, shape.qkv))
    rotated = shape.heads + shape.kv_heads
    of_head = np.repeat(np.outer(positions, frequencies), 2, axis=1)
    angles[:, : rotated * shape.depth] = np.tile(of_head, rotated)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
