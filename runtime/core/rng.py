"""The only source of randomness: run ids from the operating system, all else from explicit seeds.

Lint forbids `random`, `uuid` and `secrets` elsewhere, because a result must depend on nothing but
the configuration, the program and its seeds.
"""

import os
import random  # noqa: TID251 - the only module that may import it

Random = random.Random
"""The type of a generator."""


def fresh_run_id() -> str:
    """A random run id of 128 bits; the coordinator refuses a Hello with another id."""
    return os.urandom(16).hex()


def seeded(*seed: int) -> Random:
    """A generator whose output depends on `seed` alone."""
    return Random(":".join(map(str, seed)))
