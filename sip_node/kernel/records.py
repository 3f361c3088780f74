"""Records of the op log by texts, interpreted; records.pxd has the C version."""

from typing import Any

from runtime.core.trace import OpRecord


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
    log.add(record, times=None if arrived.train is None else arrived.train.times)
