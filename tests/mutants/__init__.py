"""Small edits of the timing code, by the part of the chip; `make mutants` runs all checks on each.

docs/internals/testing.md describes the method.
"""

from tests.mutants import (
    dma,
    exchanges,
    hbm,
    host,
    launches,
    links,
    lists,
    loads,
    products,
    queues,
    records,
    router,
    routes,
    sips,
    vector,
)

PARTS = {
    "memories": hbm.MUTANTS,
    "DMA": dma.MUTANTS,
    "vector engine": vector.MUTANTS,
    "matrix products": products.MUTANTS,
    "links and floor plan": links.MUTANTS,
    "routers with credits": router.MUTANTS,
    "routes and flow control between SIPs": routes.MUTANTS,
    "between SIPs": sips.MUTANTS,
    "queues and commands": queues.MUTANTS,
    "host and launch": host.MUTANTS,
    "records of operations, commands and programs": records.MUTANTS,
    "loads over time and counters": loads.MUTANTS,
    "command lists": lists.MUTANTS,
    "repeated launches": launches.MUTANTS,
    "repeated collectives": exchanges.MUTANTS,
}
"""The mutants by part of the chip."""
ALL = tuple(mutant for mutants in PARTS.values() for mutant in mutants)
"""All mutants, by part."""
