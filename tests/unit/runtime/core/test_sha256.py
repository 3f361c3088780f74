import subprocess
import sys
from hashlib import sha256
from itertools import accumulate

import numpy as np
import pytest

from runtime.core.sha256 import RunningSha256, sha256_hex

MIB = 1 << 20
SPLITS = [(0,), (3, 5), (MIB, 1), (MIB - 1, 2, 7), (1, 3 * MIB, 4)]


def test_little_data_has_its_sha256() -> None:
    # FIPS 180-2, appendix B.1.
    assert sha256_hex(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("sizes", SPLITS, ids=str)
def test_parts_have_the_sha256_of_the_whole(sizes: tuple[int, ...]) -> None:
    data = np.arange(sum(sizes)).astype(np.uint8).tobytes()
    running = RunningSha256()
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        running.update(memoryview(data)[end - size : end])
        assert running.hexdigest() == sha256(data[:end]).hexdigest()


@pytest.mark.parametrize("size", [4, MIB + 4])
def test_a_copy_goes_on_alone(size: int) -> None:
    running = RunningSha256()
    running.update(bytes(size))
    other = running.copy()
    other.update(np.array([1, 2], dtype=np.int32))
    assert running.hexdigest() == sha256(bytes(size)).hexdigest()
    added = np.array([1, 2], dtype=np.int32).tobytes()
    assert other.hexdigest() == sha256(bytes(size) + added).hexdigest()


def test_little_data_needs_no_openssl() -> None:
    program = (
        "import sys\n"
        "from runtime.core.sha256 import RunningSha256, sha256_hex\n"
        "hash = RunningSha256()\n"
        "hash.update(bytes(1 << 20))\n"
        "hash.hexdigest(), sha256_hex(b'abc')\n"
        "assert '_hashlib' not in sys.modules\n"
        "hash.update(b'1')\n"
        "assert '_hashlib' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 0
