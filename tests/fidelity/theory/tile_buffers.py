"""Times of matrix products whose tiles wait for the memory: the number of buffers sets the pace.

An operand's buffer is occupied from the request of its tile to the end of its fetch, a result's
from its store to the acknowledgement of the memory. Tiles are one packet each, and all are full.
"""

from kernbench.oracle.theory.engines.gemm import GemmNumbers
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.theory.dma import DmaTimes


class TileBufferTimes:
    """Products in float16 of `file`, on a memory so slow that its latency hides all else."""

    def __init__(self, file: TopologyFile) -> None:
        self._numbers, self._dma = GemmNumbers.of(file), DmaTimes(file)
        self._buffers: int = file["pe.scheduler.tile_buffers"]
        self._tile_bytes: int = file["packet_bytes"]

    def streamed_ps(self, steps: int) -> int:
        """`steps` steps of one output tile that stays in TCM, both operands streamed.

        The two packets of a step land S apart, S the time of a packet at the slice, and the packets
        of b steps that are requested together 2 S apart. The next step is requested when a step has
        been fetched. So a round of b steps takes a load of two packets and a fetch.
        """
        fetch_ps, packet_ps = self._numbers.fetch_ps(2), self._dma.packet_ps
        # The first step of a round; the others follow 2 S apart.
        load_ps = self._dma.load_ps(self._tile_bytes) + packet_ps
        rounds, rest = divmod(steps - 1, self._buffers)
        ready_ps = rounds * (load_ps + fetch_ps) + rest * 2 * packet_ps + load_ps
        return ready_ps + fetch_ps + self._numbers.tile_ps() + self._numbers.store_ps(2)

    def written_ps(self, tiles: int) -> int:
        """`tiles` output tiles of one step each, written to memory from one buffer.

        Without the loads of the operands, which are in TCM, and the last write.
        """
        store_ps = self._numbers.store_ps(2)
        write_ps = self._dma.store_ps(self._numbers.tile.m * self._numbers.tile.n * 2)
        first_ps = self._numbers.fetch_ps(2) + self._numbers.tile_ps()
        return first_ps + tiles * store_ps + (tiles - 1) * write_ps
