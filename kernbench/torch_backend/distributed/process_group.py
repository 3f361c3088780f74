"""The process group `ahbm` of `torch.distributed`: the simulated collectives of the fabric."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from kernbench.torch_backend.aten.operators import DEVICE
from kernbench.torch_backend.distributed import integer_exchange as integers
from kernbench.torch_backend.distributed.device_work import DeviceWork, TimeEstimate
from kernbench.torch_backend.distributed.integer_exchange import ReceivedIntegers
from kernbench.torch_backend.distributed.staging import CollectiveStaging
from kernbench.torch_backend.runtime.pytorch_api import ProcessGroupBase
from runtime.device import collectives as low_level
from runtime.device.rank.rank_state import ProcessGroup

_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


class DeviceProcessGroup(ProcessGroupBase):
    """A process group on the fabric. Tensors on the host, and those with gaps in memory, pass
    through a tensor of the device.
    """

    def __init__(self, group: ProcessGroup, device: torch.device) -> None:
        super().__init__(group.rank, group.world_size)
        self._group, self._device = group, device
        self._integers = integers.IntegerExchange(group)
        self._name = self._description = ""
        self._estimated: TimeEstimate | None = None

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's names, here and below
        """The name of the backend."""
        return DEVICE

    def getGroupName(self) -> str:  # noqa: N802
        """The name by which PyTorch finds the group."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Set the name."""
        self._name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        """The description of the group."""
        return self._description

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        """Set the description."""
        self._description = description

    @property
    def group_name(self) -> str:
        """The name by which PyTorch finds the group."""
        return self._name

    @property
    def group_desc(self) -> str:
        """The description of the group."""
        return self._description

    @property
    def _device_types(self) -> list[torch.device]:
        return [self._device]

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def _get_backend(self, device: torch.device) -> "DeviceProcessGroup":
        del device
        return self

    @property
    def supports_splitting(self) -> bool:
        """False: every rank makes every group."""
        return False

    @property
    def supports_time_estimate(self) -> bool:
        """True: the time of collectives can be measured, in the simulation."""
        return True

    def _start_time_estimate(self) -> None:
        self._estimated = TimeEstimate()
        self._integers.is_measured = True

    def _end_time_estimate(self) -> float:
        estimated, self._estimated = self._estimated, None
        self._integers.is_measured = False
        assert estimated is not None, "PyTorch calls both, in this order"
        return estimated.microseconds()

    def _staging(self) -> CollectiveStaging:
        return CollectiveStaging(in_scratch=self._estimated is not None)

    def _work(
        self,
        works: Sequence[low_level.Work | None],
        staging: CollectiveStaging,
        tensors: list[Tensor],
        received: ReceivedIntegers | None = None,
        *,
        blocks: bool = False,
    ) -> DeviceWork:
        self._integers.launched()
        if self._estimated is not None:
            self._estimated.add(works)
        return DeviceWork(works, staging, tensors, received, blocks=blocks)

    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> dist.Work:
        """Combine the elements of all ranks, in place."""
        op = _op(opts)
        received = self._integers.call("all_reduce", tensors, integers.combined(op))
        staging = self._staging()
        works = [
            low_level.all_reduce(staging.both(each), op, self._group, async_op=True)
            for each in tensors
            if each.numel()
        ]
        return self._work(works, staging, list(tensors), received)

    allreduce_coalesced = allreduce

    def broadcast(self, tensors: Sequence[Tensor], opts: Any) -> dist.Work:
        """Replace the elements of all ranks by those of the root."""
        received = self._integers.call(
            "broadcast", tensors, integers.of_root, sources=[opts.rootRank]
        )
        staging = self._staging()
        works = [
            low_level.broadcast(
                staging.both(each, moved=True),
                group=self._group,
                async_op=True,
                group_src=opts.rootRank,
            )
            for each in tensors
            if each.numel()
        ]
        return self._work(works, staging, list(tensors), received)

    def reduce(self, tensors: Sequence[Tensor], opts: Any) -> dist.Work:
        """Combine the elements of all ranks on the root."""
        # Other ranks than the root have parts of sums.
        results = integers.combined(_op(opts)) if self._group.rank == opts.rootRank else None
        received = self._integers.call("reduce", tensors, results)
        staging = self._staging()
        works = [
            low_level.reduce(
                staging.both(each),
                op=_op(opts),
                group=self._group,
                async_op=True,
                group_dst=opts.rootRank,
            )
            for each in tensors
            if each.numel()
        ]
        return self._work(works, staging, list(tensors), received)

    def allgather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> dist.Work:
        """The tensors of all ranks, one for each rank."""
        del opts
        received = self._integers.call("all_gather", inputs, integers.by_rank)
        staging = self._staging()
        works = [
            low_level.all_gather(
                [staging.written(each, moved=True) for each in listed],
                staging.read(source, moved=True),
                self._group,
                async_op=True,
            )
            for listed, source in zip(outputs, inputs, strict=True)
            if source.numel()
        ]
        return self._work(works, staging, [each for listed in outputs for each in listed], received)

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> dist.Work:
        """`allgather` of several tensors; the lists of `outputs` are by rank."""
        by_tensor = [list(each) for each in zip(*outputs, strict=True)]
        return self.allgather(by_tensor, inputs, opts)

    def all_gather_single(self, output: Tensor, source: Tensor, opts: Any = None) -> dist.Work:
        """The tensors of all ranks, one after the other in one tensor."""
        return self.all_gather_single_coalesced([output], [source], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> dist.Work:
        """`all_gather_single` of several tensors."""
        del opts
        received = self._integers.call("all_gather", inputs, integers.joined)
        staging = self._staging()
        works = [
            low_level.all_gather_into_tensor(
                staging.written(output, moved=True),
                staging.read(_apart(source, output), moved=True),
                self._group,
                async_op=True,
            )
            for output, source in zip(outputs, inputs, strict=True)
            if source.numel()
        ]
        return self._work(works, staging, list(outputs), received)

    def reduce_scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any = None
    ) -> dist.Work:
        """Combine the tensors of all ranks; rank r gets the r-th one."""
        results = integers.turn_of(self._group, integers.combined(_op(opts)))
        sources = [each for listed in inputs for each in listed]
        received = self._integers.call("reduce_scatter", sources, results)
        staging = self._staging()
        works = [
            low_level.reduce_scatter(
                staging.written(output),
                [staging.read(each) for each in listed],
                _op(opts),
                self._group,
                async_op=True,
            )
            for output, listed in zip(outputs, inputs, strict=True)
            if output.numel()
        ]
        return self._work(works, staging, list(outputs), received)

    def reduce_scatter_single(self, output: Tensor, source: Tensor, opts: Any = None) -> dist.Work:
        """Combine the tensors of all ranks; rank r gets the r-th part."""
        return self.reduce_scatter_single_coalesced([output], [source], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> dist.Work:
        """`reduce_scatter_single` of several tensors."""
        results = integers.part_of(self._group, integers.combined(_op(opts)))
        received = self._integers.call("reduce_scatter", inputs, results)
        staging = self._staging()
        works = [
            low_level.reduce_scatter_tensor(
                staging.written(output),
                staging.read(_apart(source, output)),
                _op(opts),
                self._group,
                async_op=True,
            )
            for output, source in zip(outputs, inputs, strict=True)
            if output.numel()
        ]
        return self._work(works, staging, list(outputs), received)

    def all_to_all_single(
        self,
        output: Tensor,
        source: Tensor,
        output_sizes: Sequence[int] = (),
        input_sizes: Sequence[int] = (),
        opts: Any = None,
    ) -> dist.Work:
        """Part r of the rows goes to rank r; the part from rank r is part r of the output."""
        del opts
        cut = integers.cut_in(input_sizes, self._group.world_size)
        results = integers.joined_for(self._group.rank)
        received = self._integers.call("all_to_all", [source], results, cut=cut)
        staging = self._staging()
        work = low_level.all_to_all_single(
            staging.written(output, moved=True, shape=_rows(output)),
            staging.read(source, moved=True, shape=_rows(source)),
            list(output_sizes) or None,
            list(input_sizes) or None,
            self._group,
            async_op=True,
        )
        return self._work([work], staging, [output], received)

    alltoall_base = all_to_all_single

    def alltoall(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> dist.Work:
        """Tensor r goes to rank r."""
        del opts
        received = self._integers.call("all_to_all", inputs, integers.given_to(self._group.rank))
        staging = self._staging()
        work = low_level.all_to_all(
            [staging.written(each, moved=True) for each in outputs],
            [staging.read(each, moved=True) for each in inputs],
            self._group,
            async_op=True,
        )
        return self._work([work], staging, list(outputs), received)

    def gather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any
    ) -> dist.Work:
        """The tensors of all ranks on the root."""
        received = self._integers.call("gather", inputs, integers.by_rank)
        staging = self._staging()
        targets = [staging.written(each, moved=True) for listed in outputs for each in listed]
        work = low_level.gather(
            staging.read(inputs[0], moved=True),
            targets or None,
            group=self._group,
            async_op=True,
            group_dst=opts.rootRank,
        )
        return self._work(
            [work], staging, [each for listed in outputs for each in listed], received
        )

    def scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any
    ) -> dist.Work:
        """Tensor r of the root goes to rank r."""
        given = [each for listed in inputs for each in listed]
        results = integers.given_to(self._group.rank)
        received = self._integers.call("scatter", given, results, sources=[opts.rootRank])
        staging = self._staging()
        sources = [staging.read(each, moved=True) for each in given]
        work = low_level.scatter(
            staging.written(outputs[0], moved=True),
            sources or None,
            group=self._group,
            async_op=True,
            group_src=opts.rootRank,
        )
        return self._work([work], staging, list(outputs), received)

    def send(self, tensors: Sequence[Tensor], dst: int, tag: int) -> dist.Work:
        """Send a tensor to a rank of the group."""
        self._integers.send(tensors, dst, tag)
        staging = self._staging()
        works = [
            low_level.isend(
                staging.read(each, moved=True), group=self._group, tag=tag, group_dst=dst
            )
            for each in tensors
        ]
        return self._work(works, staging, list(tensors))

    def recv(self, tensors: Sequence[Tensor], src: int, tag: int) -> dist.Work:
        """Receive a tensor from a rank of the group."""
        received = self._integers.receive(src, tag)
        staging = self._staging()
        works = [
            low_level.irecv(
                staging.written(each, moved=True), group=self._group, tag=tag, group_src=src
            )
            for each in tensors
        ]
        return self._work(works, staging, list(tensors), received)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int) -> dist.Work:
        """`ValueError`: a receive names its sender."""
        raise ValueError(
            f"recv of {len(tensors)} tensor with tag {tag} from any rank: the fabric matches a "
            "receive by its sender; pass src"
        )

    def barrier(self, opts: Any = None) -> dist.Work:
        """Complete when every rank of the group has called it."""
        del opts
        return self._work(
            [low_level.barrier(self._group, async_op=True)], self._staging(), [], blocks=True
        )


def _op(opts: Any) -> low_level.ReduceOp:
    if opts is None:
        return low_level.ReduceOp.SUM
    for name in _OPS:
        if opts.reduceOp == getattr(dist.ReduceOp, name):
            return low_level.ReduceOp[name]
    raise ValueError(f"{opts.reduceOp} is not supported on {DEVICE!r}; it has {', '.join(_OPS)}")


def _apart(source: Tensor, output: Tensor) -> Tensor:
    """A source that is the whole output, in a group of one rank, as a copy."""
    return (
        source.clone()
        if source.data_ptr() == output.data_ptr() and source.numel() == output.numel()
        else source
    )


def _rows(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
