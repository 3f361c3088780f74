"""Keys in full and by their ends."""

import pytest

from kernbench.sweep.keys import ConfigFile, ConfigTexts, find_key
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError

TEXTS = ConfigTexts(
    "topology.yaml",
    read_text(default_file("topology.yaml")),
    "ccl.yaml",
    read_text(default_file("ccl.yaml")),
)


@pytest.mark.parametrize(
    ("given", "file", "key"),
    [
        # A full path counts, also where it is the end of another key.
        ("ucie.bw_gbs", ConfigFile.TOPOLOGY, "ucie.bw_gbs"),
        ("dma.channels", ConfigFile.TOPOLOGY, "pe.dma.channels"),
        ("channels", ConfigFile.TOPOLOGY, "pe.dma.channels"),
        ("impl.pe_gemm", ConfigFile.TOPOLOGY, "impl.pe_gemm"),
        ("defaults.n_slots", ConfigFile.CCL, "defaults.n_slots"),
        # The file omits it, and the schema has it.
        ("tree.slot_size", ConfigFile.CCL, "algorithms.tree.slot_size"),
    ],
)
def test_a_key_is_found_in_full_or_by_a_unique_end(given: str, file: ConfigFile, key: str):
    assert find_key(TEXTS, given) == (file, key)


@pytest.mark.parametrize("file", list(ConfigFile))
def test_every_key_is_found_by_its_full_path(file: ConfigFile):
    keys = TEXTS.keys(file)
    assert [find_key(TEXTS, key) for key in keys] == [(file, key) for key in keys]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "bw_gbs",
            (
                "the end of 6 keys: ucie.bw_gbs, sip.io_chiplet.pcie_ep.bw_gbs, "
                "sip.io_chiplet.io_cpu.bw_gbs, sip.io_chiplet.noc.bw_gbs and 2 more"
            ),
        ),
        ("gemm.modle", "no key of topology.yaml or ccl.yaml; did you mean 'pe.gemm.model'?"),
        ("ucie.bw", "no key of topology.yaml or ccl.yaml; did you mean 'ucie.bw_gbs'?"),
        ("dma.chanels", "no key of topology.yaml or ccl.yaml; did you mean 'pe.dma.channels'?"),
        ("ucie", "a section, not a key; its first key is ucie.overhead_ns"),
        ("pe.gemm", "a section, not a key; its first key is pe.gemm.model"),
        ("cube.noc.hbm_hole_mm", "its value is a list; a sweep varies keys with one value"),
    ],
)
def test_other_names_are_refused_in_one_line(given: str, problem: str):
    with pytest.raises(UsageError) as refused:
        find_key(TEXTS, given)
    assert str(refused.value) == f"--set {given}: {problem}"


def test_a_name_without_a_similar_key_is_refused_with_the_sections():
    with pytest.raises(UsageError, match=r"; known: algorithms\.\*, control_bytes, cube\.\*"):
        find_key(TEXTS, "xyzzy")
