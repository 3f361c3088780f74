"""`torch.ahbm`: the device of a rank. Every rank owns one SIP, so there is one device to set: its own."""

from runtime.rank_state import running_rank


def set_device(device: int) -> None:
    """Select the SIP of this rank; `RuntimeError` for any other, since a rank can reach its own SIP only."""
    own = running_rank().rank
    if device != own:
        raise RuntimeError(f"invalid device ordinal {device}: this rank owns SIP {own}")


def current_device() -> int:
    """The SIP of this rank."""
    return running_rank().rank


def device_count() -> int:
    """How many SIPs the system has."""
    return running_rank().topology.sips


def synchronize() -> None:
    """Wait until everything queued on the device has completed."""
    state = running_rank()
    state.device.wait(state.device.submit([], "synchronize"))


def elapsed_ps() -> int:
    """The simulated time at which this rank stands, in picoseconds."""
    return running_rank().device.now_ps


def cube_count() -> int:
    """How many cubes a SIP has."""
    return running_rank().topology.cubes


def has_data() -> bool:
    """Whether tensors of this run have elements; not so with `--no-data`."""
    return running_rank().data
