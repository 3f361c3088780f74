"""The SIPs of both sides, the rows of the study, and the content of `kv_transfer.json`.

Each side divides the KV heads over its ranks in order (tensor parallel). A head moves from the rank
of the prefill that has it to the rank of the decode that has it. Between sides of unequal size a
rank sends to several ranks, or receives from several.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from kernbench.studies.study_results import StudyResults, below_bound, wrong_count


class RankOrder(StrEnum):
    """The order of the ranks along the SIPs, by its name in flags and in the results file.

    `blocks`: the ranks of the prefill, then those of the decode. `mirrored`: the same, those of the
    decode in reverse order. `interleaved`: each rank of the smaller side between the ranks of the
    other side with which it shares heads.
    """

    BLOCKS = "blocks"
    MIRRORED = "mirrored"
    INTERLEAVED = "interleaved"


class HeadsMove(NamedTuple):
    """The KV heads of `heads` move from SIP `source` to SIP `target`."""

    heads: range
    source: int
    target: int


class Sides(NamedTuple):
    """The SIP of each rank of the prefill, and of each rank of the decode."""

    prefill: tuple[int, ...]
    decode: tuple[int, ...]

    @classmethod
    def of(cls, order: RankOrder, prefill: int, decode: int) -> "Sides":
        """The SIPs of `prefill` and `decode` ranks; one number must divide the other."""
        if order is RankOrder.INTERLEAVED:
            return _interleaved(prefill, decode)
        others = range(prefill, prefill + decode)
        in_order = others if order is RankOrder.BLOCKS else reversed(others)
        return cls(tuple(range(prefill)), tuple(in_order))

    def moves(self, heads: int) -> Iterator[HeadsMove]:
        """All of `heads` KV heads, which both sides divide: as many for each pair of ranks."""
        each = heads // max(map(len, self))
        for first in range(0, heads, each):
            ranks = (first * len(side) // heads for side in self)
            source, target = (side[rank] for side, rank in zip(self, ranks, strict=True))
            yield HeadsMove(range(first, first + each), source, target)


def _interleaved(prefill: int, decode: int) -> Sides:
    fewer, more = sorted((prefill, decode))
    each = more // fewer
    # A group of SIPs for each rank of the smaller side, which is in its middle.
    middle = each // 2
    single = [group * (each + 1) + middle for group in range(fewer)]
    several = [sip for sip in range(fewer + more) if sip not in single]
    sides = (single, several) if prefill <= decode else (several, single)
    return Sides(*map(tuple, sides))


class KvSizes(Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes of the sweep; `pairs` are the SIPs of the prefill and of the decode."""

    pairs: tuple[tuple[int, int], ...]
    orders: tuple[RankOrder, ...]
    tokens: tuple[int, ...]
    layers: int
    new_tokens: int
    network: str


class LinkLoad(Struct, frozen=True, forbid_unknown_fields=True):
    """The bytes of a layer that pass the link from SIP `source` to SIP `target`.

    `pairs` are the SIPs that send and receive them: several share the link.
    """

    source: int
    target: int
    nbytes: int
    pairs: tuple[tuple[int, int], ...]


class KvBounds(Struct, frozen=True, forbid_unknown_fields=True):
    """Least times of the transfer of one layer, in picoseconds.

    `link_ps` is that of the busiest port, `alpha_ps` its part which does not depend on bytes;
    `memory_ps` is that of the HBM of the SIP which reads or writes the most bytes.
    """

    port: str
    port_bytes: int
    link_ps: float
    alpha_ps: float
    memory_ps: float

    @property
    def bytes_ps(self) -> float:
        """The time that each further layer adds."""
        return max(self.link_ps - self.alpha_ps, self.memory_ps)

    @property
    def binds(self) -> str:
        """The resource that sets the bound: the port by name, or the memory."""
        return self.port if self.link_ps - self.alpha_ps >= self.memory_ps else "HBM"

    def after_ps(self, layers: int) -> float:
        """All layers, one behind the other, once the prefill has ended."""
        return self.alpha_ps + layers * self.bytes_ps

    def beside_ps(self, layers: int, computed_ps: int) -> float:
        """Time added to a prefill whose other `layers` - 1 layers take `computed_ps`: the transfers
        in excess of computation, and the last layer.
        """
        return self.after_ps(1) + max(0.0, (layers - 1) * self.bytes_ps - computed_ps)


class KvRow(Struct, frozen=True, forbid_unknown_fields=True):
    """The transfer of all layers by sizes and order. Times are from the start of the prefill
    on its last SIP.

    Without overlap the kernels end at `layers_ps`, layer by layer, and the last element is there at
    `after_ps`. With overlap the last kernel ends at `beside_prefill_ps`, and the last element of
    each layer is there at `arrivals_ps`. `wrong` counts wrong elements of both runs, None without
    data.
    """

    prefill: int
    decode: int
    order: RankOrder
    tokens: int
    new_tokens: int
    layers_ps: tuple[int, ...]
    after_ps: int
    beside_prefill_ps: int
    arrivals_ps: tuple[int, ...]
    links: tuple[LinkLoad, ...]
    bounds: KvBounds
    wrong: int | None

    @property
    def label(self) -> str:
        """SIPs of both sides, order and tokens."""
        return f"{self.pair} {self.order} {self.tokens} tokens"

    @property
    def pair(self) -> str:
        """The SIPs of both sides."""
        return f"{self.prefill} to {self.decode}"

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.layers_ps)

    @property
    def time_ps(self) -> int:
        """The end of the run with overlap."""
        return self.arrivals_ps[-1]

    @property
    def prefill_ps(self) -> int:
        """The prefill alone."""
        return self.layers_ps[-1]

    @property
    def layer_ps(self) -> float:
        """The computation of a layer."""
        return self.prefill_ps / self.layers

    @property
    def added_after_ps(self) -> int:
        """Time that the transfer adds to the time to first token without overlap."""
        return self.after_ps - self.prefill_ps

    @property
    def added_beside_ps(self) -> int:
        """The same with overlap, with the time by which transfers slow the prefill down."""
        return max(self.arrivals_ps) - self.prefill_ps

    @property
    def bound_after_ps(self) -> float:
        """The least time that can be added without overlap."""
        return self.bounds.after_ps(self.layers)

    @property
    def bound_beside_ps(self) -> float:
        """The least time that can be added with overlap."""
        return self.bounds.beside_ps(self.layers, self.prefill_ps - self.layers_ps[0])

    @property
    def utilisation(self) -> float:
        """Bytes of the busiest port over what it could carry from the end of the prefill on."""
        return self.layers * self.bounds.bytes_ps / self.added_after_ps

    @property
    def checked(self) -> str:
        """Whether the elements are right, in words."""
        if self.wrong is None:
            return "no data"
        return f"{self.wrong:,} wrong" if self.wrong else "right"

    @property
    def faults(self) -> list[str]:
        """Wrong elements, times below bounds."""
        return [
            *wrong_count(self.wrong),
            *below_bound(self.added_after_ps, self.bound_after_ps, "added without overlap"),
            *below_bound(self.added_beside_ps, self.bound_beside_ps, "added with overlap"),
        ]


class KvResults(StudyResults[KvRow], frozen=True, forbid_unknown_fields=True):
    """The file."""

    sizes: KvSizes

    def of(self, pair: tuple[int, int], order: RankOrder) -> tuple[KvRow, ...]:
        """The rows of a pair and an order, by rising number of tokens."""
        return tuple(
            row for row in self.rows if (row.prefill, row.decode) == pair and row.order is order
        )
