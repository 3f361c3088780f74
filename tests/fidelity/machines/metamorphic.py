"""Group g: changes of the topology file that must halve every time, or must change nothing."""

from typing import Any, cast

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.systems.all_reduce import all_reduce
from kernbench.oracle.theory.bandwidths import channel_gbs
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.config.config_file import default_file, read_text
from runtime.core.config.plain_yaml import from_yaml, to_yaml
from runtime.core.rng import Random, seeded
from runtime.core.trace import OpRecord

STEPS = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100, 125)
"""500 / step GB/s are the bandwidths at which a byte takes an even number of picoseconds.

All of them are finite decimals."""


FORMULA = "T(2 B, t/2) = T(B, t) / 2"


def metamorphic(file: TopologyFile, seed: int) -> list[Check]:
    """Both checks of the group."""
    return [*_halved(file), *_permuted(file, seed)]


def _halved(file: TopologyFile) -> list[Check]:
    """Twice the bandwidths and clocks, half the overheads and wires: each time is exactly half.

    All numbers of the file are first replaced by similar ones which halve without rounding.
    """
    even = file.with_values({path: _even(path, value) for path, value in _leaves(file.content)})
    # An efficiency of 1 leaves the bandwidth of a channel as the one number to round.
    pc_gbs = _even("hbm.pc_bw_gbs", float(channel_gbs(even)))
    slow = even.with_values({"cube.hbm_ctrl.efficiency": 1.0, "hbm.pc_bw_gbs": pc_gbs})
    fast = slow.with_values({path: _half(path, value) for path, value in _leaves(slow.content)})
    # Credits whose size is a multiple of the unit, as all packets are.
    content = from_yaml(read_text(default_file("ccl.yaml")))
    ccl = to_yaml(content | {"defaults": content["defaults"] | {"ipcq_credit_size_bytes": 16}})
    before, after = all_reduce(slow.text, ccl=ccl), all_reduce(fast.text, ccl=ccl)
    pairs = [
        pair
        for sip, records in before.records.items()
        for pair in zip(records, after.records[sip], strict=True)
    ]
    return [
        Check(
            id="g.half.end",
            text="all bandwidths x2, all times /2: end of the run",
            formula=FORMULA,
            expected=before.time_ps / 2,
            measured=after.time_ps,
            unit="ps",
        ),
        Check(
            id="g.half.each",
            text=f"the same: of {len(pairs):,} records, those whose times are not halved",
            formula=FORMULA,
            expected=0,
            measured=sum(not _halves(*pair) for pair in pairs),
            unit="records",
        ),
    ]


def _halves(slow: OpRecord, fast: OpRecord) -> bool:
    """Whether both are the same operation, with half the times in `fast`."""
    same = (slow.engine, slow.address) == (fast.engine, fast.address)
    return same and (slow.start_ps, slow.end_ps) == (2 * fast.start_ps, 2 * fast.end_ps)


def _permuted(file: TopologyFile, seed: int) -> list[Check]:
    rng = seeded(seed)
    shuffled = [TopologyFile(_shuffled(file.content, rng)).text for _ in range(2)]
    digests = {all_reduce(text).digests for text in (file.text, *shuffled)}
    return [
        Check(
            id="g.order",
            text="different digests of a run with the YAML keys in three orders",
            formula="one digest",
            expected=1,
            measured=len(digests),
            unit="digests",
        )
    ]


def _shuffled(section: Any, rng: Random) -> Any:
    if not isinstance(section, dict):
        return section
    items = list(cast("dict[str, Any]", section).items())
    rng.shuffle(items)
    return {key: _shuffled(value, rng) for key, value in items}


def _leaves(section: dict[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """Key path and value of everything that is not a section, without keys that are null."""
    leaves: list[tuple[str, Any]] = []
    for key, value in section.items():
        if isinstance(value, dict):
            leaves += _leaves(cast("dict[str, Any]", value), f"{path}{key}.")
        elif value is not None:
            leaves.append((path + key, value))
    return leaves


def _even(path: str, value: Any) -> Any:
    """The nearest value that is still a whole number of picoseconds after halving all times."""
    if path.endswith("bw_gbs"):
        return 500 / min(STEPS, key=lambda step: abs(500 / step - value))
    if path.endswith("_ns"):
        return round(value, 2)
    # At 0.2 ns/mm, a hundredth of a millimetre is 2 ps: lengths of the file are even picoseconds.
    return 0.2 if path == "ns_per_mm" else value


def _half(path: str, value: Any) -> Any:
    if path.endswith(("bw_gbs", "clock_ghz")):
        return value * 2
    return round(value / 2, 6) if path.endswith("_ns") or path == "ns_per_mm" else value
