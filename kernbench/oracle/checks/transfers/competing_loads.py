"""Loads that compete for an HBM slice or a link, and single accesses, each beside its closed form.

The bench `congestion` prints these measurements, `c.kernels` checks them. Loads that compete are
measured in the steady state: the time that a second `size` bytes for each PE adds to the first.
Single accesses are kernels on one PE of an otherwise idle SIP.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernbench import DPPolicy, tl, torch
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.contention import Contention, TimeBounds
from kernbench.oracle.theory.paths.memory_access import MemoryAccess
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.device.rank.rank_state import running_rank

TOLERANCE = 1e-3
"""Tolerance of a time against its bounds: the times of packets are rounded up one by one."""
ITEM_BYTES = 4
QUEUES = "intercube"
"""The algorithm whose queue pairs join PE 0 of neighbouring cubes."""


@dataclass(frozen=True)
class Measurement:
    """`pes` PEs moved `nbytes` each in `measured_ps`; theory allows `expected`, by `formula`."""

    scenario: str
    pes: int
    nbytes: int
    measured_ps: int
    expected: TimeBounds
    formula: str

    @property
    def fits(self) -> bool:
        """Whether the time is inside the bounds."""
        spread_ps = self.expected.spread_ps
        least_ps = self.expected.least_ps * (1 - TOLERANCE) - spread_ps
        most_ps = self.expected.most_ps * (1 + TOLERANCE) + spread_ps
        return least_ps <= self.measured_ps <= most_ps


def load(x: tl.Pointer, count: int, words: int, pes: int, owners: tuple[int, ...]) -> None:
    """Kernel: load `count` words from the shard of another PE.

    `x` is the shard of PE 0, `owners` has the PE whose shard each PE loads from, and `words` is the
    size of a shard.
    """
    pe = tl.program_id(1) * pes + tl.program_id(0)
    tl.load(x + owners[pe] * words, count)


def store(x: tl.Pointer, count: int, words: int, owner: int) -> None:
    """Kernel: copy `count` words from the own shard, at `x`, to that of PE `owner`."""
    tl.store(x + owner * words, tl.load(x, count))


def send(x: tl.Pointer, count: int) -> None:
    """Kernel: PE 0 of cube 0 sends `count` words of its shard to PE 0 of the cube to the east."""
    if tl.program_id(1) == 0:
        tl.send("E", tl.load(x, count))
    else:
        tl.recv("W", count, torch.int32)


def measurements(file: TopologyFile, size: int, access: int) -> list[Measurement]:
    """All measurements on the SIP of this rank, whose topology file is `file`.

    Those that the topology has too few PEs or cubes for are left out.
    """
    sip = _MeasuredSip(file, 2 * max(size, access))
    return [*_contended(sip, size), *_by_distance(sip, access), *_engines(sip, access)]


class _MeasuredSip:
    """A tensor with a shard of `nbytes` on every PE, and kernels on it."""

    def __init__(self, file: TopologyFile, nbytes: int) -> None:
        self.file, self.pes, self.cubes = file, file.pes_per_cube, file.cubes
        self.words = nbytes // ITEM_BYTES
        shape, dp = (self.cubes * self.pes, self.words), DPPolicy(cube="row_wise", pe="row_wise")
        self._shards = torch.empty(shape, dtype=torch.int32, dp=dp)
        leaders = DPPolicy(cube="row_wise", num_cubes=min(self.cubes, 2), num_pes=1)
        self._leaders = torch.empty(min(self.cubes, 2), self.words, dtype=torch.int32, dp=leaders)

    def load_ps(self, owners: tuple[int, ...], nbytes: int) -> int:
        """The time in which the first PEs, one for each owner, load from the shards of owners."""
        # A window of the first shards: PEs that load nothing run no kernel.
        window = self._shards.narrow(0, 0, len(owners))
        return self._run(load, window, nbytes, self.words, self.pes, owners)

    def store_ps(self, owner: int, nbytes: int) -> int:
        """The time in which PE 0 copies from its own shard to that of another PE."""
        return self._run(store, self._shards.narrow(0, 0, 1), nbytes, self.words, owner)

    def send_ps(self, nbytes: int) -> int:
        """The time in which PE 0 of cube 0 loads bytes and PE 0 of cube 1 receives them."""
        return self._run(send, self._leaders, nbytes)

    def steady_ps(self, owners: tuple[int, ...], nbytes: int) -> int:
        """The time that a second `nbytes` for each PE adds to the first."""
        return self.load_ps(owners, 2 * nbytes) - self.load_ps(owners, nbytes)

    def _run(
        self, kernel: Callable[..., None], tensor: torch.Tensor, nbytes: int, *arguments: object
    ) -> int:
        count = nbytes // ITEM_BYTES
        launched = torch.launch(kernel.__name__, kernel, tensor, count, *arguments)
        torch.ahbm.synchronize()
        return launched.pe_exec_ps


def _contended(sip: _MeasuredSip, nbytes: int) -> Iterator[Measurement]:
    theory, pes, every = Contention(sip.file), sip.pes, sip.cubes * sip.pes
    if sip.file["packet_bytes"] % (sip.file["hbm.num_pcs"] * sip.file["hbm.burst_bytes"]):
        # Packets that leave channels idle delay each other: there is no closed form.
        return

    def measured(scenario: str, owners: tuple[int, ...], expected: TimeBounds) -> Measurement:
        time_ps = sip.steady_ps(owners, nbytes)
        formula = "max of k n / B" if expected.most_ps > expected.least_ps else "k n / B"
        return Measurement(
            scenario=scenario,
            pes=len(owners),
            nbytes=nbytes,
            measured_ps=time_ps,
            expected=expected,
            formula=formula,
        )

    for count in range(1, min(pes, 3) + 1):
        yield measured("one slice", (0,) * count, theory.one_slice(count, nbytes))
    if sip.file["sip.cube_mesh.w"] > 1:
        owners = tuple(range(pes, 2 * pes))
        yield measured("one UCIe link", owners, theory.one_link(pes, nbytes))
    yield measured("own slices", tuple(range(every)), theory.own_slices(nbytes))
    width, height = sip.file["sip.cube_mesh.w"], sip.file["sip.cube_mesh.h"]
    middle = height // 2 * width + width // 2
    for position, cube in dict.fromkeys((("corner", 0), ("middle", middle))):
        if sip.cubes > 1:
            owners = (cube * pes,) * every
            expected = theory.hot_slice(cube, nbytes)
            yield measured(f"one slice, {position} cube", owners, expected)


def _by_distance(sip: _MeasuredSip, nbytes: int) -> Iterator[Measurement]:
    """PE 0 loads from its own slice, from those of its cube, and from those of other cubes."""
    theory, pes = MemoryAccess(sip.file), sip.pes
    width = sip.file["sip.cube_mesh.w"]
    near = {pes - 1: "last PE of the cube", 1 % pes: "next PE", 0: "own slice"}
    for owner, distance in sorted(near.items()):
        time_ps = theory.load_ps((0, 0), (0, owner), nbytes)
        yield _exact(f"load, {distance}", sip.load_ps((owner,), nbytes), nbytes, time_ps)
    by_hops = dict[int, int]()
    for cube in range(1, sip.cubes):
        by_hops.setdefault(cube // width + cube % width, cube)
    for hops, cube in sorted(by_hops.items()):
        time_ps = theory.load_ps((0, 0), (cube, 0), nbytes)
        scenario = f"load, {hops} cube{'' if hops == 1 else 's'} away"
        yield _exact(scenario, sip.load_ps((cube * pes,), nbytes), nbytes, time_ps)


def _engines(sip: _MeasuredSip, nbytes: int) -> Iterator[Measurement]:
    """The same bytes from PE 0 of cube 0 to PE 0 of cube 1, by DMA at either end and by IPCQ."""
    if sip.file["sip.cube_mesh.w"] < 2:
        return
    theory, near, far = MemoryAccess(sip.file), (0, 0), (1, 0)
    own_ps = theory.load_ps(near, near, nbytes)
    time_ps = theory.load_ps(near, far, nbytes)
    yield _exact("DMA load, next cube", sip.load_ps((sip.pes,), nbytes), nbytes, time_ps)
    time_ps = own_ps + theory.store_ps(near, far, nbytes)
    yield _exact("DMA store, next cube", sip.store_ps(sip.pes, nbytes), nbytes, time_ps)
    dist = torch.distributed
    dist.init_process_group("ahbm", algorithm=QUEUES)
    config = running_rank().ccl.resolve(QUEUES)
    if config.buffer_kind == "tcm" and nbytes <= min(config.slot_size, sip.file["packet_bytes"]):
        costs = KernelCosts(sip.file, config.vc_chunk_size)
        message_ps = costs.message_ps(costs.to_cube(0, 1), nbytes)
        time_ps = own_ps + message_ps + costs.copy_ps(nbytes)
        yield _exact("IPCQ, next cube", sip.send_ps(nbytes), nbytes, time_ps)
    dist.destroy_process_group()


def _exact(scenario: str, measured_ps: int, nbytes: int, time_ps: int) -> Measurement:
    return Measurement(
        scenario=scenario,
        pes=1,
        nbytes=nbytes,
        measured_ps=measured_ps,
        expected=TimeBounds(time_ps, time_ps),
        formula="overheads + wires + n/B",
    )
