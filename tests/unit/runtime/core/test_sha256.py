from pathlib import Path

from runtime.core.sha256 import sha256_hex, sha256_of_file

# FIPS 180-2, appendices B.1 and B.3.
OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
OF_A_MILLION_A = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"


def test_bytes_have_their_sha256() -> None:
    assert sha256_hex(b"abc") == OF_ABC
    assert sha256_hex(b"a" * 1_000_000) == OF_A_MILLION_A


def test_a_file_has_the_sha256_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a" * 1_000_000)
    assert sha256_of_file(tmp_path / "file") == OF_A_MILLION_A
