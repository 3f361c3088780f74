"""The table of docs/keys.md and the comments of `topology.yaml` are those of the declarations."""

import yaml

from runtime.model.keys import hardware_keys
from tests.renew_keys import FILE, NONE, PAGE, renewed_file, renewed_page

PAGE_TEXT, FILE_TEXT = PAGE.read_text("utf-8"), FILE.read_text("utf-8")
COMMAND = "python -m tests.renew_keys"


def test_the_page_has_the_table_of_the_declarations():
    assert renewed_page(PAGE_TEXT) == PAGE_TEXT, COMMAND


def test_the_file_has_the_comments_of_the_declarations():
    assert renewed_file(FILE_TEXT) == FILE_TEXT, COMMAND


def test_lines_of_the_file_have_at_most_100_columns():
    assert [line for line in FILE_TEXT.splitlines() if len(line) > 100] == []


def test_a_changed_row_is_written_again_and_its_source_stays():
    row = next(line for line in PAGE_TEXT.splitlines() if line.startswith("| `ucie.bw_gbs` |"))
    assert row.endswith("| given |")
    other = "| `ucie.bw_gbs` | MB | 3 | nothing | measured |"
    assert renewed_page(PAGE_TEXT.replace(row, other)) == PAGE_TEXT.replace(
        row, row.replace("| given |", "| measured |")
    )


def test_a_key_without_a_row_gets_one_without_a_source():
    lines = PAGE_TEXT.splitlines(keepends=True)
    row = next(line for line in lines if line.startswith("| `pe.dma.channels` |"))
    renewed = renewed_page(PAGE_TEXT.replace(row, ""))
    (added,) = set(renewed.splitlines()) - set(PAGE_TEXT.replace(row, "").splitlines())
    assert added == f"| `pe.dma.channels` | {NONE} | 8 | requests in flight | {NONE} |"


def test_a_row_of_a_key_that_does_not_exist_goes():
    row = "| `ns_per_mm` |"
    assert renewed_page(PAGE_TEXT.replace(row, f"| `ns_per_m` | a | b | c | d |\n{row}")) == (
        PAGE_TEXT
    )


def test_comments_are_written_behind_keys_and_others_stay():
    assert renewed_file("# own\npe:  # section\n  dma:\n    channels: 3  # old\n  other: 1\n") == (
        "# own\npe:  # section\n  dma:\n    channels: 3            # requests in flight\n"
        "  other: 1\n"
    )


def test_a_mapping_in_one_line_has_the_meanings_of_its_keys():
    assert renewed_file("sip:\n  cube_mesh: {w: 4, h: 4}\n") == (
        "sip:\n  cube_mesh: {w: 4, h: 4}  # columns of cubes; rows of cubes\n"
    )


def test_every_key_of_the_file_is_declared_and_values_stay():
    renewed = yaml.safe_load(renewed_file(FILE_TEXT))
    assert renewed == yaml.safe_load(FILE_TEXT)
    comments = "\n".join(line.partition("# ")[2] for line in FILE_TEXT.splitlines())
    in_file = [key for key in hardware_keys() if not key.path.startswith("impl.")]
    assert [key.path for key in in_file if key.acts_on not in comments] == []
