"""Two PEs joined by a pair of queues, and a program that sends one message between them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import yaml

from runtime import torch
from runtime.ccl.mappers import CubePe, Mapping
from runtime.core import dtypes
from runtime.core.config.config_file import default_file
from runtime.core.trace import OpRecord
from runtime.device.launches.launch import launch_on
from runtime.language import tl
from runtime.language.value import Value
from runtime.model.topology import Topology
from tests.support.world import Simulation, simulate


def __getattr__(name: str) -> Callable[[Topology, int], Mapping]:
    """Mappers by name.

    `pair_0_1_5_3` joins direction E of cube 0, PE 1 to direction W of cube 5, PE 3.
    `exchange_5_3` joins SIPs at cube 5, PE 3. `both_0_0_0_1` does both: it joins two PEs, and each
    of them with its own in the next SIP.
    """
    kind, *numbers = name.split("_")
    if kind not in ("pair", "exchange", "both") or not all(number.isdigit() for number in numbers):
        raise AttributeError(name)
    places = [(int(cube), int(pe)) for cube, pe in zip(numbers[::2], numbers[1::2], strict=True)]
    return lambda topology, root_cube: _mapping(kind, places)


def _mapping(kind: str, places: list[CubePe]) -> Mapping:
    if kind == "exchange":
        return Mapping(tuple(places), {}, frozenset(places))
    first, second = places
    joined = {first: {"E": second}, second: {"W": first}}
    return Mapping((first, second), joined, frozenset(places if kind == "both" else ()))


def ccl_text(mapper: str, **values: Any) -> str:
    """The default file with the algorithm `joined` as its default; `values` are its parameters."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    joined = {
        "module": "runtime.ccl.algorithms.ring",
        # By import path, it keeps the order of the ranks on every machine.
        "topology": "runtime.ccl.topologies.ring_1d",
        "mapper": mapper,
        "validator": "any_placement",
    }
    content["defaults"]["algorithm"] = "joined"
    del content["selection"]
    content["algorithms"] = {"joined": joined | values}
    return yaml.safe_dump(content)


def message(nbytes: int) -> Value:
    """A value in TCM without a load: the message is the only traffic."""
    return Value((nbytes,), dtypes.int8, np.arange(nbytes).astype(np.int8))


def transfer(
    source: CubePe, target: CubePe, nbytes: int, *, topology: str | None = None, **ccl: Any
) -> OpRecord:
    """The arrival of one message between two PEs of one SIP."""

    def kernel(rank: int) -> None:
        if (tl.program_id(1), tl.program_id(0)) == source:
            tl.send("E", message(nbytes))
        else:
            tl.recv("W", nbytes, dtypes.int8)

    mapper = f"tests.support.joined.pair_{source[0]}_{source[1]}_{target[0]}_{target[1]}"
    return _only_arrival(_launch(kernel, [source, target], 1, topology, ccl_text(mapper, **ccl)))


def transfer_between_sips(
    place: CubePe,
    nbytes: int,
    *,
    sips: int = 2,
    source: int = 0,
    topology: str | None = None,
    **ccl: Any,
) -> OpRecord:
    """The arrival of one message from SIP `source` at the same PE of the next SIP in the ring."""

    def kernel(rank: int) -> None:
        if rank == source:
            tl.send("global_E", message(nbytes))
        elif rank == (source + 1) % sips:
            tl.recv("global_W", nbytes, dtypes.int8)

    mapper = f"tests.support.joined.exchange_{place[0]}_{place[1]}"
    return _only_arrival(_launch(kernel, [place], sips, topology, ccl_text(mapper, **ccl)))


def _launch(
    kernel: Callable[..., None], pes: list[CubePe], sips: int, topology: str | None, ccl: str
) -> Simulation:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launch_on("transfer", kernel, (rank,), [], pes)
        torch.ahbm.synchronize()

    return simulate(program, sips, topology=topology, ccl=ccl)


def _only_arrival(world: Simulation) -> OpRecord:
    [(_, arrival)] = world.of("pe_ipcq", "arrival")
    return arrival
