from pathlib import Path

from runtime.core.sha256 import sha256_hex
from sip_node.compiled.sources import digest


def test_the_digest_depends_on_names_and_contents_of_sources_only(tmp_path: Path) -> None:
    (tmp_path / "a.pyx").write_text("x")
    alone = digest(tmp_path, sha256_hex)
    (tmp_path / "a.py").write_text("x")
    assert digest(tmp_path, sha256_hex) == alone
    (tmp_path / "a.pyx").rename(tmp_path / "b.pyx")
    renamed = digest(tmp_path, sha256_hex)
    (tmp_path / "b.pyx").write_text("y")
    assert len({alone, renamed, digest(tmp_path, sha256_hex)}) == 3
