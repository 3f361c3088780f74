from pathlib import Path

from runtime.core.compiled.sources import digest, modules, source_of, sources
from runtime.core.sha256 import sha256_hex

ROOT = Path(__file__).parents[5]


def written(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_a_text_has_a_pxd_and_a_part_of_the_kernel_has_a_pyx(tmp_path: Path) -> None:
    chip = "sip_node/chip"
    text, kernel = (f"{chip}/text.py", f"{chip}/text.pxd"), (f"{chip}/c.py", f"{chip}/c.pyx")
    written(tmp_path, *text, *kernel, f"{chip}/c.pxd", f"{chip}/python.py", f"{chip}/types.pxd")
    assert modules(tmp_path) == {
        "sip_node.chip.text": tmp_path / text[0],
        "sip_node.chip.c": tmp_path / kernel[1],
    }


def test_functions_of_the_kernel_that_are_parts_of_their_callers_are_no_module(
    tmp_path: Path,
) -> None:
    assert modules(written(tmp_path, "sip_node/kernel/a.py", "sip_node/kernel/a.pxd")) == {}


def test_the_source_of_a_module_is_that_from_which_it_is_compiled(tmp_path: Path) -> None:
    written(tmp_path, "sip_node/a.pyx", "sip_node/a.py", "sip_node/b.py", "kernbench/c.py")
    assert source_of("sip_node.a", tmp_path) == tmp_path / "sip_node/a.pyx"
    assert source_of("sip_node.b", tmp_path) == tmp_path / "sip_node/b.py"
    assert source_of("sip_node.c", tmp_path) is None
    assert source_of("kernbench.c", tmp_path) is None


def test_every_module_of_the_compiled_core_has_a_last_name_of_its_own() -> None:
    """The library has one init function for each, of that name."""
    found = modules(ROOT)
    assert len({name.rpartition(".")[2] for name in found}) == len(found) > 0


def test_the_digest_depends_on_names_and_contents_of_sources_only(tmp_path: Path) -> None:
    written(tmp_path, "sip_node/compiled/a.pyx", "coordinator/compiled/other.pxd")
    room, other = tmp_path / "sip_node" / "compiled", tmp_path / "coordinator" / "compiled"
    (room / "a.pyx").write_text("x")
    alone = digest(tmp_path, sha256_hex)
    (room / "a.py").write_text("x")
    assert digest(tmp_path, sha256_hex) == alone
    (room / "a.pyx").rename(room / "b.pyx")
    renamed = digest(tmp_path, sha256_hex)
    (room / "b.pyx").rename(other / "b.pyx")
    moved = digest(tmp_path, sha256_hex)
    (other / "b.pyx").write_text("y")
    assert len({alone, renamed, moved, digest(tmp_path, sha256_hex)}) == 4


def test_the_digest_depends_on_a_text(tmp_path: Path) -> None:
    written(tmp_path, "sip_node/chip/text.py", "sip_node/chip/text.pxd")
    before = digest(tmp_path, sha256_hex)
    (tmp_path / "sip_node/chip/text.py").write_text("x")
    assert digest(tmp_path, sha256_hex) != before


def test_what_exists_in_one_mode_only_reads_no_key_of_the_hardware() -> None:
    # So no key acts in one mode only: texts read them, and a text is one file in both modes.
    of_one_mode = [
        version
        for source in sources(ROOT)
        if source.suffix in (".pyx", ".pxd")
        for version in (source, source.with_suffix(".py"))
        if version.suffix != ".py" or (version.exists() and version not in modules(ROOT).values())
    ]
    assert len(of_one_mode) > 100
    assert [str(path) for path in of_one_mode if "topology" in path.read_text("utf-8")] == []


def test_only_what_is_not_simulated_depends_on_which_core_runs() -> None:
    packages = ("coordinator", "kernbench", "runtime", "sip_node")
    choosing = {
        str(path.relative_to(ROOT))
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if "IS_COMPILED" in path.read_text("utf-8")
    }
    assert choosing == {
        "runtime/core/compiled/choice.py",
        "sip_node/chip/fast_forward.py",
        "sip_node/chip/launches/launch_templates.py",
        # The number of processes, by which no result depends.
        "kernbench/benches/short_runs.py",
    }
