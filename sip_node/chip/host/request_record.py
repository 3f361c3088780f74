"""The checks of a host request before it is sent; its record, and that of its command, after it."""

from zlib import crc32

from msgspec.structs import replace

from runtime.core.errors import PhysAddrError
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg, Request
from runtime.core.run_tables import COMMANDS
from runtime.core.trace import OpRecord
from sip_node.chip.context import ChipContext
from sip_node.chip.host.streams import Command
from sip_node.chip.mapping.strided_block import bytes_at
from sip_node.chip.records.run_recorder import RunRecorder

_PACK = COMMANDS.packer.pack


def check_request(request: Request, chip: ChipContext, why: str) -> None:
    """Raise `ValueError` or `PhysAddrError` for bytes that are in no memory, or in two; `why` is
    the purpose of the command.
    """
    if not isinstance(request, MemoryWriteMsg | MemoryReadMsg | PeDmaMsg):
        return
    if request.nbytes < 1:
        raise ValueError(f"{why}: {request}: a request moves at least one byte")
    if chip.locate(request.address) != chip.locate(request.address + request.nbytes - 1):
        raise PhysAddrError(
            f"{request.address:#x}",
            f"{why}: {request.nbytes:,} bytes from there run past the end of the memory",
        )
    tcm_bytes = chip.topology.tcm_bytes
    if isinstance(request, PeDmaMsg) and not 0 <= request.tcm_offset <= tcm_bytes - request.nbytes:
        raise ValueError(f"{why}: {request}: it leaves the TCM, which has {tcm_bytes:,} bytes")


def record_of(request: Request, start_ps: int, end_ps: int, read: bytes) -> OpRecord:
    """The record of a request that is complete; `read` are the bytes that a read returned.

    A write leaves its bytes in memory and a read has bytes of memory as its input. The bytes that a
    PE copies for the host are in the record of its DMA.
    """
    record = OpRecord("host", type(request).__name__, start_ps, end_ps)
    if not isinstance(request, MemoryWriteMsg | MemoryReadMsg | PeDmaMsg):
        return record
    record = replace(record, address=request.address, nbytes=request.nbytes)
    if isinstance(request, PeDmaMsg):
        return record
    block = bytes_at(request.address, request.nbytes)
    record = replace(record, shape=block.shape, dtype=block.dtype)
    if isinstance(request, MemoryWriteMsg):
        return replace(record, checksum=crc32(request.data))
    return replace(record, inputs=(block,), checksum=crc32(read))


def record_command(recorder: RunRecorder, command: Command) -> None:
    """Append the row of a command to the table of its SIP."""
    text, requests = recorder.text, command.requests
    recorder.add(
        COMMANDS,
        _PACK(
            command.number,
            command.stream,
            text(type(requests[0]).__name__ if requests else ""),
            text(command.why),
            text(command.line),
            command.submitted_ps,
            command.departed_ps,
            command.released_ps,
            command.completed_ps,
            command.after,
        ),
    )
