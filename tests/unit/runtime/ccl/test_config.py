import re
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.ccl.config import AlgorithmConfig, load_ccl, parse_ccl
from runtime.core.errors import ConfigError
from tests.support.ccl_texts import DEFAULTS, RING

TEXT = DEFAULTS + RING
ROOT = Path(__file__).parents[4]


def error_of(text: str) -> str:
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
    assert ring == AlgorithmConfig(
        name="ring",
        module="runtime.ccl.algorithms.ring",
        topology="ring_1d",
        mapper="all_pes",
        validator="any_placement",
        buffer_kind="tcm",
        backpressure="sleep",
        n_slots=4,
        slot_size=4096,
        vc_chunk_size=256,
        ipcq_credit_size_bytes=16,
        world_size=None,
        root_cube=None,
        n_elem=None,
    )


def test_an_algorithm_overrides_the_defaults() -> None:
    overrides = """
    buffer_kind: hbm
    n_slots: 8
    slot_size: 128
    root_cube: 0
    n_elem: 64
"""
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
        (
            TEXT + "    peer_rings_bytes: 8192\n",
            (
                "algorithms.ring.peer_rings_bytes: topology 'ring_1d' has no receive ring for each "
                "other rank, as 'fully_connected' has; set n_slots and slot_size instead"
            ),
        ),
        (DEFAULTS, "algorithms: this key is missing"),
        (DEFAULTS + "algorithms: {}\n", "algorithms: "),
        (DEFAULTS + "algorithms: []\n", "algorithms: should be a mapping of keys, got a list of 0"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_key(text: str, message: str) -> None:
    assert error_of(text).startswith(f"ccl.yaml: {message}")


@pytest.mark.parametrize(
    ("key", "name", "message"),
    [
        ("mapper", "all_pe", "'all_pe' is not known; did you mean 'all_pes'?"),
        ("topology", "ring", "'ring' is not known; did you mean 'ring_1d'?"),
        ("validator", "any", "'any' is not known; known: any_placement, multi_pe_sip_local, "),
        ("module", "ring", "'ring' cannot be imported: No module named 'ring'"),
        (
            "module",
            "runtime.ccl.algorithms.rign",
            (
                "'runtime.ccl.algorithms.rign' cannot be imported: No module named "
                "'runtime.ccl.algorithms.rign'; did you mean 'runtime.ccl.algorithms.ring'?"
            ),
        ),
        (
            "module",
            "runtime.ccl.algorithms.ring.all_reduce",
            (
                "'runtime.ccl.algorithms.ring.all_reduce' cannot be imported: "
                "'runtime.ccl.algorithms.ring' is a module, not a package"
            ),
        ),
        ("module", "a..b", "'a..b' cannot be imported: "),
        (
            "module",
            "runtime.ccl.mappers",
            "'runtime.ccl.mappers' has no function arguments(group, itemsize) (and 1 more)",
        ),
        (
            "mapper",
            "runtime.ccl.mappers:leader_onli",
            (
                "'runtime.ccl.mappers:leader_onli' cannot be imported: module "
                "'runtime.ccl.mappers' has no attribute 'leader_onli'; did you mean 'leader_only'?"
            ),
        ),
        (
            "topology",
            "no.such.module.star",
            "'no.such.module.star' cannot be imported: No module named 'no'",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error_when_the_file_is_read(
    key: str, name: str, message: str
) -> None:
    text = re.sub(rf"(    {key}:).*", rf"\1 {name}", TEXT)
    assert error_of(text).startswith(f"ccl.yaml: algorithms.ring.{key}: {message}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def all_reduce(): ...\n", "'star' has no function arguments(group, itemsize)"),
        (
            "arguments = lambda group, itemsize: ()\ndef allreduce(): ...\n",
            (
                "'star' has no kernel, a function named like one of all_reduce, reduce, broadcast, "
                "all_gather, all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single, "
                "all_to_all, gather, scatter"
            ),
        ),
        ("def arguments(:\n", "'star' cannot be imported: invalid syntax (%s, line 1)"),
    ],
)
def test_the_module_of_an_algorithm_is_read_but_not_run(
    tmp_path: Path, source: str, message: str
) -> None:
    module = tmp_path / "star.py"
    module.write_text(f"{source}\nraise SystemExit('the module was imported')\n")
    text = TEXT.replace("runtime.ccl.algorithms.ring", "star")
    with pytest.raises(ConfigError) as raised:
        parse_ccl(text, "mine.yaml", directories=[str(tmp_path)])
    expected = message.replace("%s", str(module))
    assert str(raised.value) == f"mine.yaml: algorithms.ring.module: {expected}"


@pytest.mark.parametrize(
    "source",
    [
        "from runtime.ccl.algorithms.ring import all_reduce, arguments\n",
        "from runtime.ccl.algorithms.ring import *\n",
        "if True:\n    arguments, all_reduce = 1, 2\n",
        "def __getattr__(name): ...\n",
    ],
)
def test_a_module_beside_the_script_is_accepted_however_it_defines_its_functions(
    tmp_path: Path, source: str
) -> None:
    (tmp_path / "star.py").write_text(source)
    text = TEXT.replace("runtime.ccl.algorithms.ring", "star")
    config = parse_ccl(text, "mine.yaml", directories=[str(tmp_path)])
    assert config.resolve("ring").module == "star"


def test_reading_the_file_loads_no_algorithm_and_no_engine() -> None:
    program = (
        "import sys; from runtime.ccl.config import load_ccl; load_ccl();"
        "print(*(name for name in sys.modules"
        " if name.startswith(('simpy', 'numpy', 'greenlet', 'runtime.ccl.algorithms.',"
        " 'runtime.language'))))"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.split() == []


def test_errors_name_the_file_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: 3\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml: defaults"):
        load_ccl(path)


QUEUES = "\nqueues:\n  pairs:\n    mapper: pe_ring\n    n_slots: 2\n"


def test_a_table_of_queues_inherits_the_defaults_and_has_no_collectives() -> None:
    ccl = parse_ccl(TEXT + QUEUES, "ccl.yaml")
    pairs = ccl.resolve_queues("pairs")
    assert (pairs.mapper, pairs.topology, pairs.n_slots) == ("pe_ring", "none", 2)
    assert (pairs.slot_size, pairs.module, pairs.key_path) == (4096, "", "queues.pairs")
    assert ccl.resolve_queues("ring") == ccl.resolve("ring")
    assert ccl.used_by("ring") == ("ring",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pe_ring", "pe_rign", "queues.pairs.mapper: 'pe_rign' is not known; did you mean"),
        ("mapper: pe_ring", "slots: 2", "queues.pairs.slots: unknown key; did you mean 'n_slots'?"),
        ("n_slots: 2", "topology: ring_1", "queues.pairs.topology: 'ring_1' is not known; did you"),
        ("pairs", "ring", "queues.ring: 'ring' is an algorithm, whose queues have its name"),
    ],
)
def test_a_wrong_table_of_queues_is_an_error_with_its_key_path(
    old: str, new: str, message: str
) -> None:
    assert message in error_of(TEXT + QUEUES.replace(old, new))


def test_the_rings_for_all_other_ranks_share_their_bytes() -> None:
    # The shipped file: 4 MiB for 8 slots of 8 KiB to each of up to 64 ranks, at least one slot.
    pairwise = load_ccl().resolve("pairwise")
    slots = {ranks: pairwise.of_group(ranks).n_slots for ranks in (1, 2, 65, 66, 256, 1024)}
    assert slots == {1: 8, 2: 8, 65: 8, 66: 7, 256: 2, 1024: 1}
    assert load_ccl().resolve("point_to_point").of_group(256).n_slots == 4
