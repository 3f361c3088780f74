"""The recorder of a SIP: texts once and before the rows that need them, rows in bounded chunks."""

from runtime.core.run_tables import CALLS, LINKS, PROGRAMS, RANK_PROGRAM, TABLES, RunTable
from runtime.wire.fields import CHUNK_BYTES, CHUNK_TEXTS, TEXT_LENGTH
from sip_node.chip.records.run_recorder import RunRecorder


class Received:
    """Chunks that a recorder passes on."""

    def __init__(self) -> None:
        self.chunks: list[tuple[str, bytes, tuple[str, ...]]] = []
        self.recorder = RunRecorder(lambda *chunk: self.chunks.append(chunk))

    def rows(self, table: RunTable) -> bytes:
        return b"".join(rows for name, rows, _ in self.chunks if name == table.name)

    @property
    def texts(self) -> list[str]:
        return [text for _, _, texts in self.chunks for text in texts]


def test_a_packed_row_has_the_bytes_of_its_columns() -> None:
    for table in TABLES:
        assert table.packer.size == table.row_bytes
    assert PROGRAMS.row_bytes == 4 + 2 + 2 + 4 + 4 + 4 + 4 + 8 + 8


def test_a_text_is_passed_on_once_and_with_the_rows_that_refer_to_it() -> None:
    received = Received()
    recorder = received.recorder
    assert [recorder.text(text) for text in ("load", "", "load", "store")] == [0, 1, 0, 2]
    recorder.add(LINKS, bytes(LINKS.row_bytes))
    recorder.flush()
    assert received.chunks == [("links", bytes(LINKS.row_bytes), ("load", "", "store"))]
    assert recorder.text("store") == 2
    assert recorder.text("dot") == 3
    recorder.add(LINKS, b"x" * LINKS.row_bytes)
    recorder.flush()
    assert received.chunks[1:] == [("links", b"x" * LINKS.row_bytes, ("dot",))]


def test_chunks_are_bounded_and_cut_between_rows() -> None:
    received, row = Received(), bytes(range(LINKS.row_bytes))
    rows = row * (3 * CHUNK_BYTES // len(row))
    received.recorder.add(LINKS, row)
    received.recorder.add(LINKS, rows)
    received.recorder.flush()
    assert received.rows(LINKS) == row + rows
    assert len(received.chunks) >= 4
    for _, part, _ in received.chunks:
        assert len(part) <= CHUNK_BYTES
        assert len(part) % len(row) == 0


def test_texts_are_of_bounded_number_and_length() -> None:
    received = Received()
    names = [f"{number}".rjust(TEXT_LENGTH + 1, "-") for number in range(2 * CHUNK_TEXTS + 1)]
    assert [received.recorder.text(name) for name in names] == list(range(len(names)))
    received.recorder.add(LINKS, bytes(LINKS.row_bytes))
    received.recorder.flush()
    assert received.texts == [name[:TEXT_LENGTH] for name in names]
    assert max(len(texts) for _, _, texts in received.chunks) == CHUNK_TEXTS


def test_rows_are_passed_on_during_a_run() -> None:
    received, rows = Received(), bytes(1000 * LINKS.row_bytes)
    for _ in range(100):
        received.recorder.add(LINKS, rows)
    assert len(received.rows(LINKS)) > 90 * len(rows)
    # And not in small pieces.
    assert len(received.chunks) < 20


def test_kernels_have_the_numbers_behind_that_of_the_rank_program() -> None:
    recorder = Received().recorder
    assert recorder.programs == RANK_PROGRAM == 0
    assert [recorder.new_program() for _ in range(3)] == [1, 2, 3]
    assert recorder.programs == 3


def program_row(recorder: RunRecorder, program: int, command: int, begin_ps: int) -> bytes:
    """A kernel of PE 4 of cube 3, which takes 20 ps."""
    kernel, thread, line = map(recorder.text, ("add", "kernels", f"bench.py:{command}"))
    times = begin_ps, begin_ps + 20
    return PROGRAMS.packer.pack(program, 3, 4, kernel, thread, command, line, *times)


def test_kernels_that_are_repeated_are_behind_those_that_have_started() -> None:
    received = Received()
    recorder = received.recorder
    for _ in range(5):
        recorder.new_program()
    kept = [program_row(recorder, program, 7, 100) for program in (3, 2)]
    # Kernels 2 and 3, behind number 1, launched by command 7, and again by command 9.
    recorder.repeat_programs(kept, 2, 1000, 1, 9, "bench.py:9")
    recorder.flush()
    again = [program_row(recorder, program, 9, 1100) for program in (7, 6)]
    assert received.rows(PROGRAMS) == b"".join(again)
    assert recorder.programs == 7


def test_rows_of_programs_are_kept_from_the_begin_to_the_end_of_keeping() -> None:
    received = Received()
    recorder = received.recorder
    rows = [program_row(recorder, program, 7, 100) for program in range(1, 5)]
    recorder.add(PROGRAMS, rows[0])
    kept = recorder.keep_programs()
    recorder.add(PROGRAMS, rows[1])
    recorder.add(LINKS, bytes(LINKS.row_bytes))
    recorder.add(PROGRAMS, rows[2])
    recorder.end_keeping()
    recorder.add(PROGRAMS, rows[3])
    assert kept == rows[1:3]
    recorder.flush()
    assert received.rows(PROGRAMS) == b"".join(rows)


def test_the_recorder_passes_on_the_calls_that_it_has() -> None:
    received = Received()
    values = range(len(CALLS.columns))
    received.recorder.calls.add(*values)
    received.recorder.flush()
    assert received.rows(CALLS) == CALLS.packer.pack(*values)
