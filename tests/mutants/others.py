"""What belongs to no other module: links and floor plan, SIPs, products, queues."""

from tests.mutants import links, products, queues, sips

MUTANTS = (*links.MUTANTS, *sips.MUTANTS, *products.MUTANTS, *queues.MUTANTS)
