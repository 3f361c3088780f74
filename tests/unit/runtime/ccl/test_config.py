from pathlib import Path

import pytest

from runtime.ccl.config import load_ccl, parse_ccl
from runtime.core.errors import ConfigError

DEFAULTS = """
defaults:
  algorithm: ring
  buffer_kind: tcm
  backpressure: sleep
  n_slots: 4
  slot_size: 4096
  vc_chunk_size: 256
  ipcq_credit_size_bytes: 16
"""
RING = """
algorithms:
  ring:
    module: my.ring
    topology: ring_1d
    mapper: all_pes
    validator: any_placement
"""
TEXT = DEFAULTS + RING


def complaint(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_ccl(text, "ccl.yaml")
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_the_shipped_file_resolves_every_algorithm() -> None:
    ccl = load_ccl()
    for name in ccl.file.algorithms:
        assert ccl.resolve(name).name == name


def test_an_algorithm_inherits_the_defaults() -> None:
    ring = parse_ccl(TEXT, "ccl.yaml").resolve()
    assert (ring.name, ring.module, ring.topology, ring.mapper) == (
        "ring",
        "my.ring",
        "ring_1d",
        "all_pes",
    )
    assert (ring.buffer_kind, ring.n_slots, ring.slot_size, ring.vc_chunk_size) == (
        "tcm",
        4,
        4096,
        256,
    )
    assert (ring.ipcq_credit_size_bytes, ring.root_cube, ring.n_elem) == (16, None, None)


def test_an_algorithm_overrides_the_defaults() -> None:
    overrides = "    buffer_kind: hbm\n    n_slots: 8\n    slot_size: 128\n    root_cube: 0\n    n_elem: 64\n"
    ring = parse_ccl(TEXT + overrides, "ccl.yaml").resolve("ring")
    assert (ring.buffer_kind, ring.n_slots, ring.slot_size, ring.root_cube, ring.n_elem) == (
        "hbm",
        8,
        128,
        0,
        64,
    )


@pytest.mark.parametrize(
    ("default", "override", "ranks"), [(None, None, 7), (4, None, 4), (4, 2, 2), (None, 2, 2)]
)
def test_the_world_size_is_the_algorithms_then_the_defaults_then_the_sip_count(
    default: int | None, override: int | None, ranks: int
) -> None:
    text = (
        f"{DEFAULTS}  world_size: {default or 'null'}\n{RING}    world_size: {override or 'null'}\n"
    )
    assert parse_ccl(text, "ccl.yaml").resolve().ranks(sips=7) == ranks


def test_null_in_an_algorithm_means_not_overridden() -> None:
    assert parse_ccl(TEXT + "    n_slots: null\n", "ccl.yaml").resolve().n_slots == 4


def test_an_unknown_algorithm_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(
        ConfigError, match=r"ccl.yaml: algorithms: no algorithm 'rign'; did you mean 'ring'\?"
    ):
        parse_ccl(TEXT, "ccl.yaml").resolve("rign")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TEXT.replace("algorithm: ring", "algorithm: tree"),
            "defaults.algorithm: no algorithm 'tree'; known: ring",
        ),
        (TEXT.replace("sleep", "poll"), "defaults.backpressure: should be 'sleep', got 'poll'"),
        (
            TEXT.replace("tcm", "l2"),
            "defaults.buffer_kind: should be 'tcm', 'hbm' or 'sram', got 'l2'",
        ),
        (TEXT.replace("4096", "100"), "defaults.slot_size: should be a multiple of 64, got 100"),
        (
            TEXT.replace("4096", "0"),
            "defaults.slot_size: should be greater than or equal to 64, got 0",
        ),
        (
            TEXT.replace("n_slots: 4", "n_slots: 0"),
            "defaults.n_slots: should be greater than or equal to 1, got 0",
        ),
        (
            TEXT.replace("size: 256", "size: -1"),
            "defaults.vc_chunk_size: should be greater than or equal to 1, got -1",
        ),
        (
            TEXT.replace("bytes: 16", "bytes: 0"),
            "defaults.ipcq_credit_size_bytes: should be greater than or equal to 1",
        ),
        (TEXT.replace("    mapper: all_pes\n", ""), "algorithms.ring.mapper: this key is missing"),
        (
            TEXT.replace("mapper:", "maper:"),
            "algorithms.ring.maper: unknown key; did you mean 'mapper'?",
        ),
        (
            TEXT + "    root_cube: -1\n",
            "algorithms.ring.root_cube: should be greater than or equal to 0, got -1",
        ),
        (
            TEXT + "    world_size: true\n",
            "algorithms.ring.world_size: should be a valid integer, got True",
        ),
        (DEFAULTS, "algorithms: this key is missing"),
        (DEFAULTS + "algorithms: {}\n", "algorithms: "),
        (DEFAULTS + "algorithms: []\n", "algorithms: should be a mapping of keys, got a list of 0"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_key(text: str, message: str) -> None:
    assert complaint(text).startswith(f"ccl.yaml: {message}")


SELECTION = """
selection:
  default: ring
  by_size:
    all_reduce:
      - {up_to_bytes: 64, algorithm: tree}
      - {up_to_bytes: 512, algorithm: ring}
    broadcast:
      - {algorithm: tree}
"""
TREE = RING.replace("ring", "tree").replace("algorithms:\n", "")
CHOOSING = DEFAULTS.replace("algorithm: ring", "algorithm: auto") + SELECTION + RING + TREE


def test_auto_takes_the_first_row_whose_limit_is_not_exceeded_and_else_the_default() -> None:
    ccl = parse_ccl(CHOOSING, "ccl.yaml")
    chosen = [ccl.choose("auto", "all_reduce", nbytes) for nbytes in (1, 64, 65, 512, 513)]
    assert chosen == ["tree", "tree", "ring", "ring", "ring"]
    assert (ccl.choose("auto", "broadcast", 1 << 20), ccl.choose("auto", "reduce", 1)) == (
        "tree",
        "ring",
    )
    assert ccl.choose("tree", "reduce", 1) == "tree"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "default:",
            "defaults:",
            "selection.defaults: unknown key; did you mean 'default'? (and 1 more)",
        ),
        (
            "by_size:",
            "by_sizes:",
            "selection.by_sizes: unknown key; did you mean 'by_size'? (and 1 more)",
        ),
        (
            "{up_to_bytes",
            "{upto_bytes",
            "selection.by_size.all_reduce[0].upto_bytes: unknown key; did you mean 'up_to_bytes'?",
        ),
        (
            "all_reduce:",
            "allreduce:",
            "selection.by_size.allreduce: no collective 'allreduce'; did you mean 'all_reduce'?",
        ),
        (
            "      - {algorithm: tree}",
            "      []",
            "selection.by_size.broadcast: this list is empty",
        ),
        (
            "algorithm: tree}",
            "algorithm: trea}",
            "selection.by_size.all_reduce[0].algorithm: no algorithm 'trea'",
        ),
        (
            "default: ring",
            "default: auto",
            "selection.default: 'auto' cannot choose itself; known: ring, tree",
        ),
        (
            "up_to_bytes: 512",
            "up_to_bytes: 64",
            "selection.by_size.all_reduce[1].up_to_bytes: is 64, and the row before takes calls of up to 64 bytes",
        ),
        (
            "up_to_bytes: 64, ",
            "",
            "selection.by_size.all_reduce[0]: this key is missing: up_to_bytes; only the last row",
        ),
        (
            SELECTION,
            "",
            "defaults.algorithm: 'auto' needs the section `selection`, which says what runs",
        ),
        (
            "  tree:\n",
            "  auto:\n",
            "algorithms.auto: 'auto' means what the section `selection` says",
        ),
    ],
)
def test_a_wrong_selection_is_one_line_that_names_the_row(old: str, new: str, message: str) -> None:
    assert complaint(CHOOSING.replace(old, new, 1)).startswith(f"ccl.yaml: {message}")


def test_errors_name_the_file_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: 3\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml: defaults"):
        load_ccl(path)
