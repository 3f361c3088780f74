"""Kernels of the device in `torch.profiler.profile`, in simulated time.

PyTorch's own events measure the wall time of the simulator. Beside them a profile with
`ProfilerActivity.PrivateUse1`, which the default activities contain, has an event for each launch
of a kernel on this rank's SIP, with the name of the kernel. It is in `events()`, in
`key_averages()` and its table, as the kernels of a GPU are, and in the Chrome trace as a process of
its own. Its times are simulated, counted from the start of the profile.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._C._autograd import DeviceType
from torch.autograd import profiler_util

from kernbench.torch_backend.runtime.pytorch_api import DEVICE, replace
from runtime.core.trace import OpRecord
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.profiler import KERNELS

_PS_PER_US = 1_000_000
_PREFIX = "kernel "
"""Precedes the name of a kernel in a record."""
_ATTRIBUTE = "_ahbm_recording"
"""The attribute of PyTorch's object of a profile that holds the recording."""


class LaunchTime(NamedTuple):
    """A launch of a kernel: from the start on its first PE to the end on its last one."""

    name: str
    start_ps: int
    end_ps: int
    pes: int


def launches(records: Sequence[OpRecord]) -> list[LaunchTime]:
    """The launches of which records of kernels on PEs are parts. A launch runs once on a PE, and
    its PEs run side by side.
    """
    ended: list[LaunchTime] = []
    open_launches: dict[str, tuple[LaunchTime, set[tuple[int, int]]]] = {}
    kernels = [each for each in records if each.engine in KERNELS]
    for each in sorted(kernels, key=lambda one: (one.start_ps, one.cube, one.pe)):
        place = each.cube, each.pe
        launch = LaunchTime(each.name.removeprefix(_PREFIX), each.start_ps, each.end_ps, 1)
        if each.name in open_launches:
            known, places = open_launches[each.name]
            if place not in places and each.start_ps <= known.end_ps:
                end_ps = max(known.end_ps, each.end_ps)
                joined = known._replace(end_ps=end_ps, pes=known.pes + 1)
                open_launches[each.name] = joined, places | {place}
                continue
            ended.append(known)
        open_launches[each.name] = launch, {place}
    ended += [launch for launch, _ in open_launches.values()]
    return sorted(ended, key=lambda one: (one.start_ps, one.end_ps, one.name))


@dataclass
class _Recording:
    start_ps: int
    records: list[OpRecord] = field(default_factory=list[OpRecord])

    def events(self) -> list[tuple[LaunchTime, float, float]]:
        """The launches, with their start and end in us from the start of the profile."""
        return [
            (each, self._us(each.start_ps), self._us(each.end_ps))
            for each in launches([one for one in self.records if one.start_ps >= self.start_ps])
        ]

    def _us(self, ps: int) -> float:
        return (ps - self.start_ps) / _PS_PER_US


def register_device_profile() -> None:
    """Add the launches to the profiles of PyTorch."""
    owner = torch.autograd.profiler.profile
    replace(owner, "_start_trace", _starting)
    replace(owner, "__exit__", _stopping)
    replace(owner, "_parse_kineto_results", _with_launches)
    replace(owner, "export_chrome_trace", _exporting)


def _starting(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def started(self: Any) -> Any:
        if self.use_device == DEVICE:
            device = running_rank().device
            setattr(self, _ATTRIBUTE, _Recording(device.now_ps, device.begin_recording()))
        return start(self)

    return started


def _stopping(leave: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(leave)
    def left(self: Any, *given: Any) -> Any:
        # It synchronises the device.
        result = leave(self, *given)
        if recording := getattr(self, _ATTRIBUTE, None):
            running_rank().device.end_recording(recording.records)
        return result

    return left


def _with_launches(parse: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    @wraps(parse)
    def parsed(self: Any, *given: Any, **options: Any) -> list[Any]:
        events = parse(self, *given, **options)
        if recording := getattr(self, _ATTRIBUTE, None):
            first = 1 + max((each.id for each in events), default=0)
            events += [
                profiler_util.FunctionEvent(
                    id=first + number,
                    name=launch.name,
                    thread=0,
                    start_us=start_us,
                    end_us=end_us,
                    input_shapes=[],
                    stack=[],
                    use_device=DEVICE,
                    device_type=DeviceType.PrivateUse1,
                    device_index=running_rank().rank,
                )
                for number, (launch, start_us, end_us) in enumerate(recording.events())
            ]
        return events

    return parsed


def _exporting(export: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(export)
    def exported(self: Any, path: str, *given: Any, **options: Any) -> Any:
        result = export(self, path, *given, **options)
        if recording := getattr(self, _ATTRIBUTE, None):
            file = Path(path)
            trace = json.loads(file.read_text("utf-8"))
            trace["traceEvents"] += _chrome_events(recording, trace["traceEvents"])
            file.write_text(json.dumps(trace), "utf-8")
        return result

    return exported


def _chrome_events(recording: _Recording, others: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    process = f"{DEVICE}:{running_rank().rank} in simulated time"
    # The two clocks have nothing in common: both start with the profile.
    first = min((float(each["ts"]) for each in others if each.get("ph") == "X"), default=0.0)
    named = {"ph": "M", "pid": process, "name": "process_name", "args": {"name": process}}
    return [
        named,
        *(
            {
                "ph": "X",
                "cat": "kernel",
                "name": launch.name,
                "pid": process,
                "tid": 0,
                "ts": first + start_us,
                "dur": end_us - start_us,
                "args": {"PEs": launch.pes, "simulated start ns": launch.start_ps / 1000},
            }
            for launch, start_us, end_us in recording.events()
        ),
    ]
