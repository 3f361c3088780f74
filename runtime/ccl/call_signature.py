"""What the ranks of a group must agree on: the text of a collective call, which its kernels and
their slots carry.

`world #3: all_reduce(f16 (1024,) on cube 0 pe 0, op sum) by ring` has a place, which call of which
group it is, and says what was called. Two ranks that make different calls at one place would wait
for each other for ever, or combine what does not belong together.
"""


def call_signature(place: str, what: str) -> str:
    """The call of `what` at `place`."""
    return f"{place}: {what}"


def ranks_text(sips: tuple[int, ...]) -> str:
    """The members of a group, by their global ranks in rising order."""
    first, last = sips[0], sips[-1]
    if len(sips) == 1:
        return f"rank {first}"
    consecutive = sips == tuple(range(first, last + 1))
    return f"ranks {first} to {last}" if consecutive else f"ranks {', '.join(map(str, sips))}"


def call_id(call: str) -> str:
    """Which call it is of the groups that have the same ranks: those made in another order have
    other names.
    """
    place = call.partition(": ")[0]
    return place.partition(" of ")[2] or place
