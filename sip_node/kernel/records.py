"""The records of a PE's operations, as its parts enter them into the op log."""

from typing import Any

from runtime.core.run_tables import Cause
from runtime.core.trace import Operand, OpRecord

FOR_CHANNEL, FOR_ENGINE, FOR_OPERAND = Cause.CHANNEL, Cause.ENGINE, Cause.OPERAND
FOR_NOTHING = Cause.NONE
"""Causes for which an operation has waited since its request."""


def enter(
    log: Any,
    engine: str,
    name: str,
    start_ps: int,
    end_ps: int,
    cube: int,
    pe: int,
    nbytes: int,
    checksum: int,
    requested_ps: int,
    waited_for: Any,
    step: int,
    target: Any,
    inputs: tuple[Any, ...],
    flow: tuple[int, int, int] | None,
    times: Any,
    axis: int | None = None,
) -> None:
    """Enter the record of an operation of a PE, which has written the block `target`.

    It was requested at `requested_ps`. In a run with records, its packets have queued for `times`,
    and a call in `step` has issued it.
    """
    record = OpRecord(
        engine=engine,
        name=name,
        start_ps=start_ps,
        end_ps=end_ps,
        cube=cube,
        pe=pe,
        address=target.address,
        nbytes=nbytes,
        shape=target.shape,
        dtype=target.dtype,
        flow=flow,
        inputs=inputs,
        strides=target.strides,
        axis=axis,
        checksum=checksum,
    )
    log.add(record, requested_ps, waited_for, times, step)


def enter_tile(
    log: Any,
    engine: str,
    name: str,
    start_ps: int,
    end_ps: int,
    cube: int,
    pe: int,
    address: int,
    nbytes: int,
    checksum: int,
    requested_ps: int,
    waited_for: Any,
    step: int,
    shape: tuple[int, ...],
    dtype: str,
    inputs: tuple[Any, ...],
) -> None:
    """Enter the record of a block without gaps, whose bytes have crossed no fabric."""
    target = Operand(address, shape, dtype)
    enter(
        log,
        engine,
        name,
        start_ps,
        end_ps,
        cube,
        pe,
        nbytes,
        checksum,
        requested_ps,
        waited_for,
        step,
        target,
        inputs,
        None,
        None,
    )


def add_arrival(log: Any, engine: str, arrived: Any, end_ps: int, cube: int, pe: int) -> None:
    """Add the record of the bytes of a transfer, which have arrived."""
    record = OpRecord(
        engine=engine,
        name="arrival",
        start_ps=arrived.sent_ps,
        end_ps=end_ps,
        cube=cube,
        pe=pe,
        address=arrived.address,
        nbytes=arrived.total,
        flow=arrived.flow,
        flow_end=True,
    )
    times = None if arrived.train is None else arrived.train.times
    log.add(record, times=times, step=arrived.step)
