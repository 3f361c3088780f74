"""`@triton.autotune`: configurations are timed in simulated time.

Each configuration runs once, in the order of its list, on the arguments of the launch, for each
value of the key. What a kernel reads and writes again is restored by `reset_to_zero` and
`restore_value`, as with Triton. The fastest one runs then, the first of equal ones.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kernbench.triton.triton_call import TritonCall

TimeOf = Callable[[TritonCall], int]
"""The simulated time of a launch, in picoseconds."""


def tuned(call: TritonCall, time_of: TimeOf) -> TritonCall:
    """The launch with the fastest configuration."""
    tuner, named = call.kernel, call.named()
    key = _key(tuner, named)
    best = tuner.cache.get(key)
    if best is None:
        best = _fastest(call, named, time_of)
        tuner.cache[key] = best
    tuner.best_config = best
    return call.inner(best.all_kwargs())


def _key(tuner: Any, named: Mapping[str, Any]) -> tuple[object, ...]:
    values = [named[name] for name in tuner.keys if name in named]
    types = [str(each.dtype) for each in named.values() if hasattr(each, "dtype")]
    return (*values, *types)


def _fastest(call: TritonCall, named: Mapping[str, Any], time_of: TimeOf) -> Any:
    tuner = call.kernel
    configurations = list(tuner.configs)
    if tuner.early_config_prune:
        configurations = tuner.early_config_prune(configurations, dict(named), **call.options)
    if len(configurations) == 1:
        return configurations[0]
    times = list[tuple[int, int]]()
    for number, configuration in enumerate(configurations):
        given = {**named, **configuration.all_kwargs()}
        if configuration.pre_hook:
            configuration.pre_hook(given)
        tuner.pre_hook(given)
        times.append((time_of(call.inner(configuration.all_kwargs())), number))
        tuner.post_hook(given, exception=None)
    time_ps, number = min(times)
    best = configurations[number]
    shown = ", ".join(f"{name}={each}" for name, each in best.all_kwargs().items())
    print(
        f"autotune: {tuner.base_fn.__name__}: {shown}: {time_ps / 1000:,.3f} ns, the fastest of "
        f"{len(configurations)}",
        flush=True,
    )
    return best
