"""The name of an LP in messages."""

from collections.abc import Sequence


def lp_name(lp: int, sips: Sequence[int], *details: str) -> str:
    """`LP 2 (ranks 4-5, pid 4711)`; `details` follow the ranks."""
    ranks = f"rank {sips[0]}" if len(sips) == 1 else f"ranks {sips[0]}-{sips[-1]}"
    return f"LP {lp} ({', '.join((ranks, *details))})"
