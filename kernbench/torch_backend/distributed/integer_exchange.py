"""Integers that collectives and messages deliver, in a run without data.

Packets have no bytes there, so a rank that calls a collective with known integers writes them to a
file in the directory of the run, before the call. The ranks that receive them read it when the
collective is complete in simulated time. By then the file exists: a collective completes after all
calls on which its result depends. So no rank waits for another one in wall time.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial, reduce
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import DEVICE
from kernbench.torch_backend.runtime.known_integers import (
    KnownIntegers,
    Later,
    NoDataError,
    is_integer,
)
from kernbench.torch_backend.runtime.pytorch_api import from_numpy
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.device import Handle
from runtime.device.collectives import ReduceOp, Work
from runtime.device.rank.rank_state import ProcessGroup, running_rank
from runtime.wire.environment import run_directory

Parts = list[list[Tensor]]
"""The tensors of the ranks from which a result comes, without their axes."""
Part = Callable[[], list[Tensor] | None]
"""A function that returns the tensors of a rank, or None if they are not known."""
Results = Callable[[Parts], list[Tensor] | None]
"""The results of a call; None if they are not known."""
_COMBINED: dict[ReduceOp, Callable[[Tensor, Tensor], Tensor]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


class ReceivedIntegers:
    """The outputs of one call: `results` of the tensors of ranks, each of which a function of
    `parts` returns, or None.
    """

    def __init__(
        self,
        known: KnownIntegers,
        call: str,
        parts: Sequence[Part],
        results: Results | None,
    ) -> None:
        self._known, self._call = known, call
        self._parts, self._results = parts, results
        self._handles: list[Handle] = []

    def begin(self, outputs: Sequence[Tensor], works: Sequence[Work]) -> None:
        """The call will write `outputs`, by the end of `works`."""
        self._handles = [work.handle for work in works]
        for number, each in enumerate(outputs):
            self._expect(number, each)

    def end(self, outputs: Sequence[Tensor]) -> None:
        """The call has written tensors without a window, by copies: on the CPU, or with gaps."""
        for number, each in enumerate(outputs):
            if each.device.type != DEVICE:
                self._copy(number, each)
            elif not each.is_contiguous():
                self._expect(number, each)

    def is_complete(self) -> bool:
        """Whether the host has the answers of all works."""
        return all(each.done for each in self._handles)

    def _expect(self, number: int, output: Tensor) -> None:
        # The shape alone: memory must die when it does in a run with data.
        if output.device.type == DEVICE:
            elements = partial(self._elements, number, output.shape)
            self._known.write(output, Later(self.is_complete, elements))

    def _copy(self, number: int, target: Tensor) -> None:
        if not target.numel() or self._results is None:
            return
        elements = self._elements(number, target.shape)
        if elements is None:
            raise NoDataError(
                self._call,
                f"an element of a tensor of {target.dtype} on the CPU",
                "this run simulates no data (--no-data)",
            )
        target.copy_(elements)

    def _elements(self, number: int, shape: Sequence[int]) -> Tensor | None:
        return None if self._all is None else self._all[number].view(shape)

    @cached_property
    def _all(self) -> list[Tensor] | None:
        """The elements of all outputs."""
        if self._results is None:
            return None
        known = Parts()
        for part in self._parts:
            tensors = part()
            if tensors is None:
                return None
            known.append(tensors)
        return self._results(known)


class IntegerExchange:
    """The integers of the calls of a process group; all ranks make its calls in one order. While
    the time of calls `is_measured`, they deliver nothing.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self._group, self._calls, self.is_measured = group, 0, False
        self._messages: dict[tuple[int, int, int], int] = {}

    def call(
        self,
        name: str,
        inputs: Sequence[Tensor],
        results: Results | None,
        *,
        sources: Sequence[int] | None = None,
        cut: Callable[[list[Tensor]], list[Tensor]] = list,
    ) -> ReceivedIntegers | None:
        """Begin a collective, before it is launched, whose results depend on the inputs of
        `sources`, by default all ranks; each of these divides them by `cut`. Without `results`
        what the call writes is of no use. None in a run with data.
        """
        known = self._known
        if known is None:
            return None
        self._calls += 1
        ranks = range(self._group.world_size) if sources is None else sources
        own: Part = _nothing
        if self._group.rank in ranks:
            own = self._posted(f"{self._calls}-{self._group.rank}", known, inputs, cut)
        parts = [
            own if rank == self._group.rank else partial(_read, self._path(f"{self._calls}-{rank}"))
            for rank in ranks
        ]
        return ReceivedIntegers(known, name, parts, results)

    def send(self, inputs: Sequence[Tensor], target: int, tag: int) -> None:
        """Post the tensors of a message."""
        known = self._known
        if known is not None:
            self._posted(self._message(self._group.rank, target, tag), known, inputs, list)

    def launched(self) -> None:
        """The kernels of the call are launched."""
        running_rank().at_begin = None

    def receive(self, source: int, tag: int) -> ReceivedIntegers | None:
        """Begin to receive a message."""
        known = self._known
        if known is None:
            return None
        part = partial(_read, self._path(self._message(source, self._group.rank, tag)))
        return ReceivedIntegers(known, "recv", [part], of_root)

    @property
    def _known(self) -> KnownIntegers | None:
        return None if self.is_measured else storages().integers

    def _message(self, source: int, target: int, tag: int) -> str:
        key = source, target, tag
        self._messages[key] = number = self._messages.get(key, 0) + 1
        return f"{source}-{target}-{tag}-{number}"

    def _path(self, call: str) -> Path | None:
        directory = run_directory()
        # Without one, the ranks are on several hosts, or processes of torchrun.
        name = re.sub(r"\W+", "_", self._group.name)
        return None if directory is None else directory / f"integers-{name}-{call}"

    def _posted(
        self,
        call: str,
        known: KnownIntegers,
        inputs: Sequence[Tensor],
        cut: Callable[[list[Tensor]], list[Tensor]],
    ) -> Part:
        """The elements of this rank, which it posts: now, or when a kernel begins which the device
        orders behind them. So they can pass from rank to rank.
        """
        values = [known.elements(each) if each.device.type == DEVICE else each for each in inputs]
        is_known = all(map(is_integer, inputs)) and all(each is not None for each in values)
        is_later = any(isinstance(each, Later) for each in values)
        # Of several tensors, each has kernels of its own.
        if not is_known or (is_later and len(values) > 1):
            return _nothing

        @cache
        def own() -> list[Tensor] | None:
            elements = [each.elements if isinstance(each, Later) else each for each in values]
            known_now = [each for each in elements if each is not None]
            if len(known_now) < len(elements):
                return None
            own = [each.detach().reshape(-1).clone() for each in cut(known_now)]
            if self._group.world_size > 1:
                self._post(call, own)
            return own

        if is_later:
            running_rank().at_begin = own
        else:
            own()
        return own

    def _post(self, call: str, elements: list[Tensor]) -> None:
        path = self._path(call)
        if path is None:
            return
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.save(file, np.array(len(elements)))
            for each in elements:
                np.save(file, each.numpy())
        part.replace(path)


def combined(op: ReduceOp) -> Results:
    """The elements of the tensors of all ranks, combined; None if the device may have others."""

    def results(parts: Parts) -> list[Tensor] | None:
        if op not in _COMBINED or any(each.dtype == torch.bool for each in parts[0]):
            return None
        return [reduce(_COMBINED[op], of_ranks) for of_ranks in zip(*parts, strict=True)]

    return results


def part_of(group: ProcessGroup, results: Results) -> Results:
    """The part of the rank in each result, which has parts for all ranks."""

    def parts_of_rank(parts: Parts) -> list[Tensor] | None:
        whole = results(parts)
        return (
            None if whole is None else [each.chunk(group.world_size)[group.rank] for each in whole]
        )

    return parts_of_rank


def turn_of(group: ProcessGroup, results: Results) -> Results:
    """The results of the rank, where results are for all ranks in turn."""

    def turns_of_rank(parts: Parts) -> list[Tensor] | None:
        whole = results(parts)
        return None if whole is None else whole[group.rank :: group.world_size]

    return turns_of_rank


def of_root(parts: Parts) -> list[Tensor]:
    """The tensors of the one rank from which all come."""
    return parts[0]


def given_to(rank: int) -> Results:
    """The tensors that the other ranks give to a rank."""
    return lambda parts: [each[rank] for each in parts]


def joined_for(rank: int) -> Results:
    """The tensors that the other ranks give to a rank, in one."""
    return lambda parts: [torch.cat([each[rank] for each in parts])]


def cut_in(sizes: Sequence[int], ranks: int) -> Callable[[list[Tensor]], list[Tensor]]:
    """Cuts a tensor in parts of as many rows, or in equal ones."""

    def cut(whole: list[Tensor]) -> list[Tensor]:
        (rows,) = whole
        return list(rows.split_with_sizes(list(sizes)) if sizes else rows.chunk(ranks))

    return cut


def by_rank(parts: Parts) -> list[Tensor]:
    """The tensors of all ranks: for each tensor of a rank, those of the others."""
    return [each for of_ranks in zip(*parts, strict=True) for each in of_ranks]


def joined(parts: Parts) -> list[Tensor]:
    """Each tensor of a rank and those of the others, in one."""
    return [torch.cat(of_ranks) for of_ranks in zip(*parts, strict=True)]


def _nothing() -> None:
    """The part of a rank on which the elements are not known."""


def _read(path: Path | None) -> list[Tensor] | None:
    """The tensors that another rank has posted; None if that rank has none."""
    if path is None or not path.exists():
        return None
    with path.open("rb") as file:
        return [from_numpy(np.load(file)) for _ in range(int(np.load(file)))]
