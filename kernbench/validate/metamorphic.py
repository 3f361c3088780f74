"""Group g: changes of the file that must halve every time, or change nothing."""

from typing import Any, cast

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.all_reduce import all_reduce, integral_ccl
from kernbench.validate.check import Check
from runtime.core.rng import Random, seeded

STEPS = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100, 125)
"""Bandwidths for which a byte takes a whole, even number of picoseconds: 500 / step GB/s, all of them finite decimals."""


def metamorphic(file: TopologyFile, seed: int) -> list[Check]:
    """Both checks of the group."""
    return [*_halved(file), *_permuted(file, seed)]


def _halved(file: TopologyFile) -> list[Check]:
    """Twice the bandwidths, half the overheads, wires and cycles, in numbers of the file's size that halve without a rest."""
    slow = file.with_values({path: _even(path, value) for path, value in _leaves(file.content)})
    channel_gbs = slow["hbm.pc_bw_gbs"] * slow["cube.hbm_ctrl.efficiency"]
    slow = slow.with_values(
        {"cube.hbm_ctrl.efficiency": 1.0, "hbm.pc_bw_gbs": _even("hbm.pc_bw_gbs", channel_gbs)}
    )
    fast = slow.with_values({path: _half(path, value) for path, value in _leaves(slow.content)})
    ccl = integral_ccl(16)
    before, after = all_reduce(slow.text, ccl=ccl), all_reduce(fast.text, ccl=ccl)
    pairs = [
        pair
        for sip, records in before.records.items()
        for pair in zip(records, after.records[sip], strict=True)
    ]
    wrong = sum(
        2 * b.start_ps != a.start_ps
        or 2 * b.end_ps != a.end_ps
        or a.engine != b.engine
        or a.address != b.address
        for a, b in pairs
    )
    formula = "T(2 B, t/2) = T(B, t) / 2"
    return [
        Check(
            "g.half.end",
            "all bandwidths x2, all times /2",
            formula,
            before.time_ps / 2,
            after.time_ps,
            0,
            "ps",
        ),
        Check(
            "g.half.each",
            f"of {len(pairs):,} records, those that do not halve",
            formula,
            0,
            wrong,
            0,
            "records",
        ),
    ]


def _permuted(file: TopologyFile, seed: int) -> list[Check]:
    rng = seeded(seed)
    digests = {
        all_reduce(text).digests
        for text in (
            file.text,
            *(TopologyFile(_shuffled(file.content, rng)).text for _ in range(2)),
        )
    }
    says = "digests of a run whose YAML keys come in three orders"
    return [Check("g.order", says, "one digest", 1, len(digests), 0, "digests")]


def _shuffled(section: Any, rng: Random) -> Any:
    if not isinstance(section, dict):
        return section
    items = list(cast("dict[str, Any]", section).items())
    rng.shuffle(items)
    return {key: _shuffled(value, rng) for key, value in items}


def _leaves(section: dict[str, Any], path: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in section.items():
        found += (
            _leaves(cast("dict[str, Any]", value), f"{path}{key}.")
            if isinstance(value, dict)
            else [(path + key, value)]
        )
    return found


def _even(path: str, value: Any) -> Any:
    """The nearest value whose half, or whose bytes, take whole picoseconds."""
    if path.endswith("bw_gbs"):
        return 500 / min(STEPS, key=lambda step: abs(500 / step - value))
    if path.endswith("_ns"):
        return round(value, 2)
    # 0.2 ns/mm: positions in hundredths of a millimetre are whole, even picoseconds.
    return 0.2 if path == "ns_per_mm" else value


def _half(path: str, value: Any) -> Any:
    if path.endswith(("bw_gbs", "clock_ghz")):
        return value * 2
    return round(value / 2, 6) if path.endswith("_ns") or path == "ns_per_mm" else value
