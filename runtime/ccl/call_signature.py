"""The signature of a collective call, on which all ranks of a group must agree; slots carry it from
rank to rank.

`world #3: all_reduce(f16 (1024,) on cube 0 pe 0, op sum) by ring` has an id, the number of the call
in its group, and a description. Two ranks with different calls under one id would deadlock, or
combine unrelated data.
"""


def call_signature(call: str, description: str) -> str:
    """The signature of a call with the id `call`."""
    return f"{call}: {description}"


def ranks_text(sips: tuple[int, ...]) -> str:
    """The members of a group, as global ranks in rising order."""
    first, last = sips[0], sips[-1]
    if len(sips) == 1:
        return f"rank {first}"
    consecutive = sips == tuple(range(first, last + 1))
    return f"ranks {first} to {last}" if consecutive else f"ranks {', '.join(map(str, sips))}"


def call_id(signature: str) -> str:
    """The id of a call without the name of its group.

    Ranks that have made their groups in different orders have different names for the group of the
    same ranks.
    """
    call = signature.partition(": ")[0]
    return call.partition(" of ")[2] or call
