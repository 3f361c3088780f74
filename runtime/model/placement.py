"""How a tensor is laid over the PEs of one SIP: policy -> shards."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import nearest

Split = Literal["replicate", "column_wise", "row_wise"]
Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class DPPolicy:
    """Data placement inside one SIP: how a tensor is split over cubes, and each cube's part over its PEs.

    `row_wise` splits the first axis, `column_wise` the last one, `replicate` gives everybody the same. `num_cubes` and
    `num_pes` limit the placement to the first cubes and the first PEs of each (None: all). Placement across SIPs is not
    a matter of tensors: every rank owns one SIP.
    """

    cube: Split = "replicate"
    pe: Split = "replicate"
    num_cubes: int | None = None
    num_pes: int | None = None

    def __post_init__(self) -> None:
        for name, split in (("cube", self.cube), ("pe", self.pe)):
            if split not in get_args(Split):
                raise ValueError(
                    f"DPPolicy({name}={split!r}): unknown split{nearest(split, get_args(Split))}"
                )


ONE_PE = DPPolicy(num_cubes=1, num_pes=1)
"""The placement of a tensor that names none: one shard, on PE 0 of cube 0."""


@dataclass(frozen=True)
class ShardSpec:
    """One shard: the PE that holds it, where it lies in the tensor's virtual range, and which elements it has.

    `spans[axis]` is the (start, stop) of the shard along each axis. Copies of the same elements share one offset.
    """

    sip: int
    cube: int
    pe: int
    offset_bytes: int
    nbytes: int
    spans: tuple[Span, ...]

    @property
    def coordinates(self) -> PeCoordinates:
        """The PE that holds the shard."""
        return PeCoordinates(self.sip, self.cube, self.pe)

    @property
    def index(self) -> tuple[slice, ...]:
        """The shard as an index into the whole array."""
        return tuple(slice(*span) for span in self.spans)


def resolve_dp_policy(
    policy: DPPolicy,
    shape: tuple[int, ...],
    itemsize: int,
    *,
    cubes: int,
    pes: int,
    target_sip: int,
) -> tuple[ShardSpec, ...]:
    """The shards of a tensor of `shape` on a SIP with `cubes` x `pes` PEs, in (cube, pe) order.

    Shards with different elements follow each other in the virtual range in that order (a tiled layout); an axis that does
    not divide evenly is a ValueError, so no element is ever lost.
    """
    num_cubes = _limit("num_cubes", policy.num_cubes, cubes)
    num_pes = _limit("num_pes", policy.num_pes, pes)
    whole = tuple((0, length) for length in shape)
    shards: list[ShardSpec] = []
    offsets: dict[tuple[Span, ...], int] = {}
    end = 0
    for cube, cube_spans in enumerate(_split(whole, policy.cube, num_cubes, f"{num_cubes} cubes")):
        for pe, spans in enumerate(
            _split(cube_spans, policy.pe, num_pes, f"{num_pes} PEs of a cube")
        ):
            nbytes = itemsize
            for start, stop in spans:
                nbytes *= stop - start
            if spans not in offsets:
                offsets[spans] = end
                end += nbytes
            shards.append(ShardSpec(target_sip, cube, pe, offsets[spans], nbytes, spans))
    return tuple(shards)


def _limit(name: str, wanted: int | None, available: int) -> int:
    if wanted is None:
        return available
    if not 1 <= wanted <= available:
        raise ValueError(f"DPPolicy({name}={wanted}): this topology has 1 to {available}")
    return wanted


def _split(
    spans: tuple[Span, ...], split: Split, parts: int, over: str
) -> Iterator[tuple[Span, ...]]:
    if split == "replicate" or parts == 1:
        yield from [spans] * parts
        return
    if not spans:
        raise ValueError(f"a 0-d tensor cannot be placed {split} over {over}; use replicate")
    axis = 0 if split == "row_wise" else len(spans) - 1
    start, stop = spans[axis]
    step, rest = divmod(stop - start, parts)
    if rest:
        raise ValueError(
            f"{split} over {over} splits axis {axis}: {stop - start} elements do not divide by {parts}; "
            f"pad the axis to {(step + 1) * parts} or place it on a divisor of {stop - start}"
        )
    for part in range(parts):
        yield (*spans[:axis], (start + part * step, start + (part + 1) * step), *spans[axis + 1 :])
