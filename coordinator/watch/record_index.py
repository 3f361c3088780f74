"""Reads the times and the component of every record of an op log."""

from array import array
from collections.abc import Callable

from runtime.core.errors import ProtocolError
from runtime.wire.codec import decode_records


class RecordIndex:
    """Reads the times and the component of the records of a chunk.

    `track(sip, cube, pe, engine)` gives the number of a component.
    """

    def __init__(self, track: Callable[[int, int, int, str], int]) -> None:
        self._track = track

    def read(self, sip: int, chunk: bytes) -> tuple[bytes, bytes, bytes, bytes]:
        """Start times, end times and numbers of the components of the records of a chunk,
        and the places in the chunk, which only the text in C needs.

        Raises `ValueError` for what is no chunk, and for times that do not fit into 64 bits; in C
        also for a chunk in another form than that of `encode_records`.
        """
        track = self._track
        try:
            records = decode_records(chunk, f"SIP {sip}")
            return (
                array("q", [record.start_ps for record in records]).tobytes(),
                array("q", [record.end_ps for record in records]).tobytes(),
                array("I", [track(sip, r.cube, r.pe, r.engine) for r in records]).tobytes(),
                b"",
            )
        except (ProtocolError, OverflowError) as error:
            raise ValueError(str(error)) from error
