"""What the ranks of a group must agree on: the text of a collective call, which its kernels and their slots carry.

`world #3: all_reduce(float16, shape (1024,), op sum)` has a place, which call of which group it is, and what was called.
Two ranks that make different calls at one place would wait for each other for ever, or combine what does not belong together.
"""


def call_text(place: str, what: str) -> str:
    """The call of `what` at `place`."""
    return f"{place}: {what}"


def place_of(call: str) -> str:
    """Which call of which group it is."""
    return call.partition(": ")[0]
