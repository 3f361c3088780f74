"""`torch.device`: the names of devices, and the check of a `device=` argument.

A rank has one device with tensors: the SIP with its number, `ahbm:<rank>`.
"""

from runtime.device.rank.rank_state import running_rank

TYPES = ("cpu", "ahbm")


class device:  # noqa: N801 - PyTorch's name
    """A device by type and number: `device("ahbm:1")`, `device("ahbm", 1)` and `device(1)`."""

    type: str
    index: int | None

    def __init__(self, type: "str | int | device", index: int | None = None) -> None:  # noqa: A002
        """`RuntimeError` for a type that does not exist, as in PyTorch."""
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        text = f"ahbm:{type}" if isinstance(type, int) else type
        name, _, number = text.partition(":")
        if name not in TYPES:
            raise RuntimeError(
                f"Expected one of {', '.join(TYPES)} device type at start of device string: {name}"
            )
        if number and not number.isdecimal():
            raise RuntimeError(f"Invalid device string: '{type}'")
        if number and index is not None:
            raise RuntimeError(
                f"type (string) must not include an index because index was passed: {type}"
            )
        self.type, self.index = name, int(number) if number else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


def own_device() -> device:
    """The device of the rank that runs."""
    return device("ahbm", running_rank().rank)


def check_device(function: str, given: object) -> None:
    """Accept the device of the rank that runs, and None; `RuntimeError` for any other."""
    if given is None:
        return
    if not isinstance(given, device | str | int) or isinstance(given, bool):
        problem = f"must be torch.device, not {type(given).__name__}"
        raise TypeError(f"{function}(): argument 'device' {problem}")
    named, own = device(given), running_rank().rank
    if named.type == "cpu":
        raise RuntimeError(
            f"{function}(): kernbench has no tensors on cpu; keep host data in numpy arrays, which "
            "torch.from_numpy(...) and x.copy_(...) take"
        )
    if named.index not in (None, own):
        raise RuntimeError(f"invalid device ordinal {named.index}: this rank owns SIP {own}")
