"""Small edits of the timing code, by the part of the chip; `make mutants` runs `validate` on each.

docs/testing.md describes the method.
"""

from tests.mutants import dma, hbm, host, others, router, routes, vector

ALL = (
    *hbm.MUTANTS,
    *dma.MUTANTS,
    *vector.MUTANTS,
    *router.MUTANTS,
    *routes.MUTANTS,
    *host.MUTANTS,
    *others.MUTANTS,
)
"""All mutants, by part."""
