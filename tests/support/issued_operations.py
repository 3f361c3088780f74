"""Compares the operations of a run with the calls whose steps they name.

What a call does follows from its blocks: their addresses and bytes. The rows of calls have them
from the language, and not from the engines, so a wrong step shows as a call with too few or too
many bytes, or with those of another one.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import prod

from runtime.core.run_tables import BLOCKS, CALLS, NONE, OPS, PROGRAMS, STEPS, BlockAccess
from tests.support.recorded_programs import Row, rows_of
from tests.support.world import Simulation

PE_ENGINES = "pe_dma", "pe_math", "pe_gemm", "pe_fetch_store"
ARRIVALS, SENDS, COPIES = "pe_ipcq", "ipcq_send", "ipcq_recv"


class IssuedOperations:
    """The operations of one SIP of a run that ended, by the call of a kernel that issued them."""

    def __init__(self, world: Simulation, sip: int) -> None:
        self.ops = rows_of(world, sip, OPS)
        self.steps = {each["step"]: each for each in rows_of(world, sip, STEPS)}
        self.programs = {each["program"]: each for each in rows_of(world, sip, PROGRAMS)}
        self.blocks: dict[int, list[Row]] = defaultdict(list)
        for block in rows_of(world, sip, BLOCKS):
            self.blocks[block["call"]].append(block)
        self._calls: dict[tuple[int, str, str], list[Row]] = defaultdict(list)
        for call in sorted(rows_of(world, sip, CALLS), key=lambda each: each["call"]):
            self._calls[call["program"], call["line"], _kind(call)].append(call)
        # How many steps of its kind and line have begun before a step at the same time.
        self._before: dict[int, int] = {}
        begun = Counter[tuple[int, str, str, int]]()
        for number, step in sorted(self.steps.items()):
            key = step["program"], step["line"], _kind(step), step["begin_ps"]
            self._before[number] = begun[key]
            begun[key] += 1
        self.of_call: dict[int, list[Row]] = defaultdict(list)
        for op in self.ops:
            if op["step"] != NONE and op["step"] in self.steps:
                self.of_call[self.call_of(self.steps[op["step"]])["call"]].append(op)

    def call_of(self, step: Row) -> Row:
        """The call to which a step belongs: the latest of its kind and line in the program. On a
        machine whose commands cost nothing, several begin at one time, in the order of the steps.
        """
        calls = self._calls[step["program"], step["line"], _kind(step)]
        behind = bisect_right(calls, step["begin_ps"], key=_begin_ps)
        first = bisect_left(calls, step["begin_ps"], key=_begin_ps)
        assert behind, f"a step without a call: {step}"
        return calls[min(first + self._before[step["step"]], behind - 1)]

    def faults(self) -> Iterator[str]:
        """Operations and calls that do not agree, each with the reason."""
        for op in self.ops:
            fault = self._fault_of(op)
            if fault:
                yield f"{fault}: {op}"
        for calls in self._calls.values():
            for call in calls:
                fault = _fault_of_call(call, self.blocks[call["call"]], self.of_call[call["call"]])
                if call["program"] and fault:
                    yield f"{fault}: {call}"

    def _fault_of(self, op: Row) -> str:
        engine, number = op["engine"], op["step"]
        if number == NONE:
            comes_from_here = engine == ARRIVALS and op["flow_source"] == NONE
            return "no step" if engine in PE_ENGINES or comes_from_here else ""
        step = self.steps.get(number)
        if step is None:
            return "a step without a row"
        program, call = self.programs[step["program"]], self.call_of(step)
        if engine == ARRIVALS or engine.startswith("ucie"):
            # The record has the address of the last packet, which is inside of the slot.
            return "" if any(_has(each, op) for each in self.of_call[call["call"]]) else "no send"
        if engine in PE_ENGINES and (op["cube"], op["pe"]) != (program["cube"], program["pe"]):
            return "a step of another PE"
        if not step["issued_ps"] <= op["requested_ps"] or op["end_ps"] > call["end_ps"]:
            return "outside of its call"
        return ""


def _begin_ps(row: Row) -> int:
    return row["begin_ps"]


def _kind(row: Row) -> str:
    """The kind of a step or a call."""
    return row["operation"].split(" ")[0]


def _has(send: Row, op: Row) -> bool:
    """Whether an operation is about the slot of a send."""
    begin = send["address"]
    return send["name"] == SENDS and begin <= op["address"] < begin + send["nbytes"]


def _fault_of_call(call: Row, blocks: list[Row], ops: list[Row]) -> str:
    """The reason for which a call, which has used some blocks, has not these operations; or ""."""
    reads, writes = (
        [each for each in blocks if each["access"] == access]
        for access in (BlockAccess.READ, BlockAccess.WRITE)
    )
    far = [each for each in reads if each["in_memory"]]
    own = [each for each in ops if each["engine"] in PE_ENGINES]
    names = Counter(each["name"] for each in own)
    match _kind(call).removesuffix("_async"):
        case "load":
            is_right = _at(own, "read_address") == _at(far, "address") and set(names) <= {"load"}
        case "store":
            is_right = _at(own, "address") == _at(writes, "address") and set(names) <= {"store"}
        case "gather":
            is_right = names == {"gather": 1} and _bytes(own) == _bytes(far)
        case "math":
            is_right = len(own) == 1 and _at(own, "address") == _at(writes, "address")
        case "chain":
            stores = [each for each in own if each["name"] == "store"]
            is_right = _at(stores, "address") == _at(writes, "address")
            is_right &= {each["engine"] for each in own} <= {"pe_math", "pe_fetch_store"}
        case "composite":
            is_right = _is_product(reads, writes, own)
        case "send":
            is_right = set(names) == {SENDS} and _bytes(own) == _bytes(reads)
        case "recv":
            copied = [] if call["operation"] == "recv in place" else writes
            is_right = set(names) <= {COPIES} and _bytes(own) == _bytes(copied)
        case "atomic":
            memory = [each for each in ops if each["engine"] not in PE_ENGINES]
            served = [each for each in memory if each["name"] != "atomic old"]
            far_writes = [each for each in writes if each["in_memory"]]
            is_right = len(own) == len(far_writes) and set(names) == {served[0]["name"]}
            is_right &= _at(served, "address") == _at(far_writes, "address")
        case _:
            is_right = not ops
    return "" if is_right else f"operations {names}"


def _is_product(reads: list[Row], writes: list[Row], ops: list[Row]) -> bool:
    """Whether operations are the tiles of a product."""
    by_engine: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for each in ops:
        by_engine[each["engine"], each["name"]].append(each)
    loads = by_engine["pe_dma", "load"]
    far = [range(each["address"], each["address"] + _span(each)) for each in reads]
    stored = [each for each in writes if each["in_memory"]]
    return (
        bool(by_engine["pe_gemm", "gemm"])
        and all(any(each["read_address"] in block for block in far) for each in loads)
        and bool(loads) == any(each["in_memory"] for each in reads)
        and _bytes(by_engine["pe_fetch_store", "store"]) == _bytes(writes)
        and _bytes(by_engine["pe_dma", "store"]) == _bytes(stored)
        and sum(map(len, by_engine.values())) == len(ops)
    )


def _span(block: Row) -> int:
    """The bytes from the first to the last element of a block."""
    shape, strides = (
        [int(each) for each in block[name].split(",") if each] for name in ("shape", "strides")
    )
    item = block["nbytes"] // prod(shape)
    if not strides:
        return block["nbytes"]
    return (1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))) * item


def _at(rows: list[Row], column: str) -> Counter[tuple[int, int]]:
    """The addresses and bytes of rows."""
    return Counter((each[column], each["nbytes"]) for each in rows)


def _bytes(rows: list[Row]) -> int:
    return sum(each["nbytes"] for each in rows)


def misattributed(world: Simulation) -> list[str]:
    """The operations of a run that do not belong to the call whose step they name, and the calls
    that have others than their own.
    """
    faults = [fault for sip in world.texts for fault in IssuedOperations(world, sip).faults()]
    return faults[:5]
