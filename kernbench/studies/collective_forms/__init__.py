"""`collective-forms`: the times of collectives by size and ranks, against their closed forms."""
