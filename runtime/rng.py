"""Randomness. Ids come from the operating system; everything else from an explicit seed."""

import random  # noqa: TID251 - the one module that may
import secrets


def fresh_run_id() -> str:
    """A random id of a run, 128 bits: processes that do not know it are strangers."""
    return secrets.token_hex(16)


def seeded(*seed: int) -> random.Random:
    """A generator whose stream depends on `seed` alone."""
    return random.Random(":".join(map(str, seed)))  # noqa: S311 - simulation, not cryptography
