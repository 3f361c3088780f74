from pathlib import Path

import pytest

from coordinator.report.cpu_capability import cpu_capability


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("fpu sse2 fma avx2 avx512f avx512dq avx512bw avx512vl", "AVX512"),
        ("fpu sse2 fma avx2 avx512f", "AVX2"),
        ("fpu sse2 avx2", "DEFAULT"),
    ],
)
def test_the_vector_unit_is_that_which_pytorch_uses(
    flags: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\nflags\t\t: {flags}\n", "utf-8")
    assert cpu_capability(info) == name
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert cpu_capability(info) == "DEFAULT"


def test_a_host_without_a_list_of_flags_has_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    assert cpu_capability(tmp_path / "none") == "DEFAULT"
