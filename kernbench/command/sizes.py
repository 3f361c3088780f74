"""Numbers of bytes on the command line."""

import re

LARGEST_SIZE = (1 << 63) - 1
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_size(text: str) -> int:
    """A number of bytes, with K, M or G for powers of 1024 as in nccl-tests.

    Raises `ValueError` for anything else, for less than one byte and for 2^63 bytes and more.
    """
    match = _SIZE.fullmatch(text.strip())
    size = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    # Compared as a float: a number of 400 digits is infinite, which has no integer.
    if not 1 <= size < LARGEST_SIZE:
        raise ValueError(text)
    return int(size)
