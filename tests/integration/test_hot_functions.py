"""The functions of texts that are marked as hot run in C, without a call of Python."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from runtime.core.compiled.sources import modules
from tests.support.generated_c import calls_of_python, hot_functions, lines_of, translated

pytest.importorskip("Cython")
# On one worker, which translates the texts once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hot")]

ROOT = Path(__file__).parents[2]
TEXTS = [path for path in modules(ROOT).values() if path.suffix == ".py" and hot_functions(path)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Path, Path]:
    """The translations of `TEXTS`."""
    return translated(TEXTS, tmp_path_factory.mktemp("made"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_a_hot_function_calls_nothing_of_python(text: Path, made: Mapping[Path, Path]) -> None:
    calls, source = calls_of_python(text, made[text]), text.read_text("utf-8").splitlines()
    found = {
        f"{function}: {source[number - 1].strip()}": sorted(calls[number])
        for function in hot_functions(text)
        for number in sorted(lines_of(text, function) & calls.keys())
    }
    assert found == {}


def test_the_path_of_a_packet_is_marked() -> None:
    marked = {text.stem: hot_functions(text) for text in TEXTS}
    assert marked["server"] == ["serve", "_duration_ps"]
    assert {"packet", "egress_stream", "memory_packets", "link_egress", "read_window"} <= set(
        marked
    )


def test_a_local_without_a_type_is_noticed(made: Mapping[Path, Path]) -> None:
    text = ROOT / "sip_node" / "chip" / "fabric" / "packet.py"
    [line] = [
        number
        for number, each in enumerate(text.read_text("utf-8").splitlines(), 1)
        if each.strip() == "transfer.train = PacketTrain(QueueTimes())"
    ]
    assert calls_of_python(text, made[text])[line] & {"__Pyx_PyObject_FastCall"}
