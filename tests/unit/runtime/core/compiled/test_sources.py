from pathlib import Path

from runtime.core.compiled.sources import digest, source_of
from runtime.core.sha256 import sha256_hex


def test_the_source_of_a_module_is_in_a_room_of_the_compiled_core(tmp_path: Path) -> None:
    room, other = tmp_path / "sip_node" / "compiled", tmp_path / "sip_node" / "chip"
    for folder in (room, other):
        folder.mkdir(parents=True)
        (folder / "a.pyx").touch()
    assert source_of("sip_node.compiled.a", tmp_path) == room / "a.pyx"
    assert source_of("sip_node.compiled.b", tmp_path) is None
    assert source_of("sip_node.chip.a", tmp_path) is None
    assert source_of("a", tmp_path) is None


def test_the_digest_depends_on_names_and_contents_of_sources_only(tmp_path: Path) -> None:
    room, other = tmp_path / "sip_node" / "compiled", tmp_path / "coordinator" / "compiled"
    room.mkdir(parents=True)
    other.mkdir(parents=True)
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
