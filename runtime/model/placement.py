"""Resolves the placement of a tensor on the PEs of one SIP: from a policy to shards."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, cast, get_args

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import nearest
from runtime.model.tile_placement import Span, TilePlacement

Split = Literal["replicate", "column_wise", "row_wise"]


@dataclass(frozen=True, kw_only=True)
class DPPolicy:
    """Data placement inside one SIP: a tensor is split over cubes, each cube's part over its PEs.

    `row_wise` splits the first axis that is longer than 1, `column_wise` the last axis, `replicate`
    copies. `num_cubes` and `num_pes` limit the placement to the first cubes and the first PEs of
    each (None: all); `cubes`, instead of `num_cubes`, are the numbers of the cubes, in rising
    order. There is no placement across SIPs: every rank owns one SIP and its own tensors.
    """

    cube: Split = "replicate"
    pe: Split = "replicate"
    num_cubes: int | None = None
    num_pes: int | None = None
    cubes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, split in (("cube", self.cube), ("pe", self.pe)):
            if split not in get_args(Split):
                raise ValueError(
                    f"DPPolicy({name}={split!r}): unknown split{nearest(split, get_args(Split))}"
                )
        if self.cubes is None:
            return
        if self.num_cubes is not None:
            raise ValueError("DPPolicy(num_cubes=, cubes=): either a number of cubes or the cubes")
        # A rank program is not type-checked before it runs. A bool would count as an integer.
        given = cast("object", self.cubes)
        numbers = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else []
        if {type(each) for each in numbers} != {int} or numbers != sorted(set(self.cubes)):
            raise ValueError(
                f"DPPolicy(cubes={self.cubes!r}): the numbers of one or more cubes, each once, in "
                "rising order"
            )


ONE_PE = DPPolicy(num_cubes=1, num_pes=1)
"""One shard, on PE 0 of cube 0: where tensors lie that are too small to be spread."""
SPREAD_BYTES = 4096
"""The least that a PE holds of a tensor that is spread: one packet."""
Placement = DPPolicy | TilePlacement
"""The placements that `dp=` accepts."""


@dataclass(frozen=True)
class ShardSpec:
    """One shard: the PE that holds it, its offset in the tensor's virtual range, its elements.

    `spans[axis]` is the (start, stop) of the shard along an axis. Copies of the same elements have
    the same offset. A PE has one shard of a tensor, or one for each of its tiles.
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


def default_placement(shape: tuple[int, ...], itemsize: int, *, cubes: int, pes: int) -> DPPolicy:
    """The placement of a tensor without `dp`, on a SIP with `cubes` x `pes` PEs.

    A tensor is split `row_wise` over cubes and their PEs, over as many PEs as divide it evenly and
    hold at least `SPREAD_BYTES` each; of equal numbers of PEs, those of fewer cubes are taken. So a
    small tensor lies on PE 0 of cube 0, and a large one on up to all PEs, in row-major order of the
    virtual addresses.
    """
    # A PE with less than a packet would pay the latency of a whole packet for it.
    most = itemsize * prod(shape) // SPREAD_BYTES
    parts, fewest = max(
        (
            (number * each, -number)
            for number in range(1, min(cubes, most) + 1)
            if (rest := _divided(shape, number)) is not None
            for each in range(1, min(pes, most // number) + 1)
            if _divided(rest, each) is not None
        ),
        default=(1, -1),
    )
    if parts == 1:
        return ONE_PE
    return DPPolicy(cube="row_wise", pe="row_wise", num_cubes=-fewest, num_pes=parts // -fewest)


def resolve_dp_policy(
    policy: Placement,
    shape: tuple[int, ...],
    itemsize: int,
    *,
    cubes: int,
    pes: int,
    target_sip: int,
) -> tuple[ShardSpec, ...]:
    """The shards of a tensor of `shape` on a SIP with `cubes` x `pes` PEs, in (cube, pe) order, or
    tile by tile in the order of a `TilePlacement`.

    Shards with different elements are consecutive in the virtual range in that order. `ValueError`
    if an axis does not divide evenly by a `DPPolicy`: only tiles may have unequal sizes.
    """
    num_pes = _limit(policy, "num_pes", policy.num_pes, pes)
    if isinstance(policy, TilePlacement):
        num_cubes = _limit(policy, "num_cubes", policy.num_cubes, cubes)
        return tuple(_dealt(policy, shape, itemsize, target_sip, num_cubes, num_pes))
    whole = tuple((0, length) for length in shape)
    shards: list[ShardSpec] = []
    offsets: dict[tuple[Span, ...], int] = {}
    end, chosen = 0, _cubes(policy, cubes)
    parts = _split(whole, policy.cube, len(chosen), f"{len(chosen)} cubes")
    for cube, cube_spans in zip(chosen, parts, strict=True):
        for pe, spans in enumerate(
            _split(cube_spans, policy.pe, num_pes, f"{num_pes} PEs of a cube")
        ):
            nbytes = itemsize * prod(stop - start for start, stop in spans)
            # Copies share the offset: a kernel on any of their PEs uses the same virtual address,
            # and each MMU maps it to the copy beside it.
            if spans not in offsets:
                offsets[spans] = end
                end += nbytes
            shards.append(
                ShardSpec(
                    sip=target_sip,
                    cube=cube,
                    pe=pe,
                    offset_bytes=offsets[spans],
                    nbytes=nbytes,
                    spans=spans,
                )
            )
    return tuple(shards)


def _dealt(
    placement: TilePlacement,
    shape: tuple[int, ...],
    itemsize: int,
    sip: int,
    num_cubes: int,
    num_pes: int,
) -> Iterator[ShardSpec]:
    """One shard for each tile."""
    end = 0
    for tile, spans in enumerate(placement.tiles(shape)):
        # Tiles are dealt to the PEs in turn, so that no PE has more than one tile more than
        # another.
        cube, pe = divmod(tile % (num_cubes * num_pes), num_pes)
        nbytes = itemsize * prod(stop - start for start, stop in spans)
        yield ShardSpec(sip=sip, cube=cube, pe=pe, offset_bytes=end, nbytes=nbytes, spans=spans)
        end += nbytes


def _row_axis(lengths: Sequence[int]) -> int:
    """The first axis longer than 1, which is the outermost one that can be split."""
    return next((axis for axis, length in enumerate(lengths) if length != 1), 0)


def _divided(shape: tuple[int, ...], parts: int) -> tuple[int, ...] | None:
    """The shape of one of `parts` equal parts by rows; None if there are none."""
    if parts == 1:
        return shape
    axis = _row_axis(shape)
    if not shape or shape[axis] % parts:
        return None
    return (*shape[:axis], shape[axis] // parts, *shape[axis + 1 :])


def _limit(policy: Placement, name: str, given: int | None, available: int) -> int:
    if given is None:
        return available
    if not 1 <= given <= available:
        call = "DPPolicy" if isinstance(policy, DPPolicy) else f"tiled_{policy.order}"
        raise ValueError(f"{call}({name}={given}): this topology has 1 to {available}")
    return given


def _cubes(policy: DPPolicy, available: int) -> Sequence[int]:
    """The numbers of the cubes that have a part."""
    if policy.cubes is None:
        return range(_limit(policy, "num_cubes", policy.num_cubes, available))
    for cube in policy.cubes:
        if not 0 <= cube < available:
            raise ValueError(
                f"DPPolicy(cubes={policy.cubes}): this topology has cubes 0 to {available - 1}"
            )
    return policy.cubes


def _split(
    spans: tuple[Span, ...], split: Split, parts: int, over: str
) -> Iterator[tuple[Span, ...]]:
    # One part is the whole tensor, also if its axis could not be divided.
    if split == "replicate" or parts == 1:
        yield from [spans] * parts
        return
    if not spans:
        raise ValueError(f"a 0-d tensor cannot be placed {split} over {over}; use replicate")
    axis = (
        _row_axis([stop - start for start, stop in spans])
        if split == "row_wise"
        else len(spans) - 1
    )
    # The span of this cube, if the tensor has been split over cubes already.
    start, stop = spans[axis]
    step, rest = divmod(stop - start, parts)
    if rest:
        raise ValueError(
            f"{split} over {over} splits axis {axis}: {stop - start} elements do not divide by "
            f"{parts}; pad the axis to {(step + 1) * parts} or place it on a divisor of "
            f"{stop - start}"
        )
    for part in range(parts):
        yield (*spans[:axis], (start + part * step, start + (part + 1) * step), *spans[axis + 1 :])
