"""Randomness. Ids come from the operating system; everything else from an explicit seed."""

import random  # noqa: TID251 - the one module that may
import secrets

Random = random.Random
"""The type of a generator."""


def fresh_run_id() -> str:
    """A random id of a run, 128 bits: processes that do not know it are strangers."""
    return secrets.token_hex(16)


def seeded(*seed: int) -> Random:
    """A generator whose stream depends on `seed` alone."""
    return Random(":".join(map(str, seed)))
