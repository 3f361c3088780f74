"""Op logs made by hand: records of the engines of one PE, with results computed here."""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np

from coordinator.verify.check import verify
from coordinator.verify.verdict import Verdict
from runtime.core.trace import Operand, OpRecord
from runtime.model.addresses import AddressMap
from tests.support.topologies import variant

Array = np.ndarray[Any, np.dtype[Any]]
NUMPY: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "u8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
}

ADDRESSES = AddressMap(variant())
HBM = ADDRESSES.pe_hbm_addr(0, 3, 1, 0)
TCM = ADDRESSES.pe_tcm_addr(0, 3, 1, 0)
REGS = ADDRESSES.pe_regfile_addr(0, 3, 1, 0)


def block(address: int, array: Array, strides: tuple[int, ...] = ()) -> Operand:
    (dtype,) = (name for name, known in NUMPY.items() if known == array.dtype)
    return Operand(address, array.shape, dtype, strides)


class Log:
    """The log of SIP 0, one operation each nanosecond, and the memories at its end."""

    def __init__(self) -> None:
        self.records: list[OpRecord] = []
        self.written = bytearray()
        self.contents: dict[int, int] = {}
        self.now_ps = 0

    def host_write(self, address: int, array: Array) -> Operand:
        data = array.tobytes()
        self.written += data
        self.leave("host", "MemoryWriteMsg", (), address, np.frombuffer(data, np.uint8))
        return block(address, array)

    def leave(
        self,
        engine: str,
        name: str,
        inputs: tuple[Operand | float, ...],
        address: int,
        result: Array,
        *,
        axis: int | None = None,
        strides: tuple[int, ...] = (),
        took_ps: int = 1000,
    ) -> Operand:
        """Record one operation, and store its result in the memory."""
        start_ps, self.now_ps = self.now_ps, self.now_ps + took_ps
        target, data = block(address, result, strides), result.tobytes()
        self.records.append(
            OpRecord(
                engine,
                name,
                start_ps,
                self.now_ps,
                3,
                1,
                address,
                len(data),
                result.shape,
                target.dtype,
                inputs=inputs,
                strides=strides,
                axis=axis,
                checksum=crc32(data),
            )
        )
        if engine != "host" or name == "MemoryWriteMsg":
            self.poke(target, result)
        return target

    def poke(self, target: Operand, array: Array) -> None:
        """Write bytes to a memory without a record."""
        item = array.dtype.itemsize
        strides = target.strides or tuple(
            stride // item for stride in np.empty(array.shape, array.dtype).strides
        )
        for index in np.ndindex(array.shape):
            at = target.address + item * sum(
                i * stride for i, stride in zip(index, strides, strict=True)
            )
            self.contents.update(zip(range(at, at + item), array[index].tobytes(), strict=True))

    def verdict(self, records: Iterable[OpRecord] | None = None) -> Verdict:
        """The verdict on `records`, by default those of the log."""
        contents = [(address, bytes([byte])) for address, byte in self.contents.items()]
        return verify(
            {0: list(self.records if records is None else records)},
            {0: self.written},
            contents,
            ADDRESSES,
        )
