"""The experts of each token, drawn from a Zipf law or read from a file, and the loads of the ranks.

Expert e is selected with a probability proportional to (e + 1)^-a; a token selects k different
experts, one after the other, each time among those that are left. Experts are in equal, consecutive
blocks on the ranks, so rank 0 has the most popular ones: the most uneven placement.

A routing file has a line of experts for each token:

    # experts of a token, the first line is token 0
    3 7
    0 3

Numbers are separated by spaces or commas; empty lines, and what follows a `#`, are ignored. All
tokens have equally many experts, all different. Each rank gets the next `lines / ranks` tokens.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runtime.core.errors import UsageError
from runtime.language.value import Array

WEIGHT_UNITS = 256
"""A weight is a multiple of 1/256, so products with float16 and their sums are exact in float64."""


def drawn_experts(shape: tuple[int, int, int], experts: int, exponent: float, seed: int) -> Array:
    """Experts of shape (ranks, tokens, k), different ones for each token."""
    rng = np.random.default_rng([seed, *shape, experts])
    # The k largest of log p + Gumbel noise are k draws without replacement: W. Kool et al.,
    # "Stochastic Beams and Where to Find Them", ICML 2019.
    scores = -exponent * np.log(np.arange(1, experts + 1)) + rng.gumbel(size=(*shape[:2], experts))
    return np.argsort(-scores, axis=2, kind="stable")[:, :, : shape[2]]


def drawn_weights(shape: tuple[int, int, int], seed: int) -> Array:
    """The weights of the experts of each token: multiples of 1/256 with the sum 1."""
    rng = np.random.default_rng([seed, *shape])
    parts = rng.multinomial(WEIGHT_UNITS, np.full(shape[2], 1 / shape[2]), size=shape[:2])
    return parts / WEIGHT_UNITS


class DispatchPlan(NamedTuple):
    """The copies of tokens that each rank sends, from experts of shape (ranks, tokens, k).

    `order[r]` sorts the tokens * k copies of rank r by expert; copy c is of token c // k.
    `rows[r][d]` are the copies that rank r sends to rank d.
    """

    order: Array
    rows: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, chosen: Array, experts: int) -> "DispatchPlan":
        """Each rank has `experts` / ranks experts."""
        ranks = len(chosen)
        flat = chosen.reshape(ranks, -1)
        # Expert parallelism: D. Lepikhin et al., "GShard", ICLR 2021. Rank d has experts d E/p to
        # (d + 1) E/p - 1.
        owners = flat // (experts // ranks)
        return cls(
            order=np.argsort(flat, axis=1, kind="stable"),
            rows=tuple(tuple(np.bincount(row, minlength=ranks).tolist()) for row in owners),
        )

    @property
    def loads(self) -> tuple[int, ...]:
        """The copies that each rank receives, its own included."""
        return tuple(map(sum, zip(*self.rows, strict=True)))


def skew(loads: tuple[int, ...]) -> float:
    """The largest load over the mean one."""
    return max(loads) * len(loads) / sum(loads)


Tokens = tuple[tuple[int, ...], ...]
"""The experts of each token."""


def read_routing(path: Path, experts: int) -> Tokens:
    """The content of a file; raises `UsageError` with the line for invalid ones."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"--routing {path} cannot be read: {reason}") from error
    tokens = list[tuple[int, ...]]()
    for location, words in _lines(path, text):
        chosen = _token(location, words, experts)
        if tokens and len(chosen) != len(tokens[0]):
            raise UsageError(
                f"{location}: {len(chosen)} experts, the first token has {len(tokens[0])}"
            )
        tokens.append(chosen)
    if not tokens:
        raise UsageError(f"--routing {path}: there is no token, a line of experts for each")
    return tuple(tokens)


def _lines(path: Path, text: str) -> Iterator[tuple[str, list[str]]]:
    """The source location of each line with numbers, and its words."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if words:
            yield f"--routing {path}, line {number}", words


def _token(location: str, words: list[str], experts: int) -> tuple[int, ...]:
    for word in words:
        if not (word.isascii() and word.isdigit()) or int(word) >= experts:
            raise UsageError(
                f"{location}: {word!r} is no expert; with --experts {experts} they are 0 to "
                f"{experts - 1}"
            )
    chosen = tuple(map(int, words))
    if len(set(chosen)) < len(chosen):
        raise UsageError(f"{location}: the experts of a token must differ")
    return chosen
