"""Random programs whose launches repeat, in part disturbed: kernels of a user and of the device,
with numbers that change from launch to launch.
"""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from runtime import DPPolicy, tl, torch
from runtime.torch import distributed as dist
from tests.support.random_overrides import with_random_overrides
from tests.support.random_programs import hardware
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

ROWS, COLUMNS = 4, 24
SIZE = ROWS * COLUMNS
Act = tuple[Any, ...]
Recipe = tuple[Act, ...]


class Ends(NamedTuple):
    """The elements of a program in two tensors, and the number of the launch."""

    source: tl.Pointer
    target: tl.Pointer
    number: float


def halved(x: tl.Value) -> tl.Value:
    return x * 0.5


def normalised(x: tl.Value, y: tl.Value) -> tl.Value:
    powers = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    return powers / tl.sum(powers, axis=1, keep_dims=True) + y


def both(x: tl.Value, y: tl.Value) -> tuple[tl.Value, tl.Value]:
    return tl.maximum(x, y), tl.sum(x * y, axis=1, keep_dims=True) + x


BLOCK, TURNS = (ROWS, COLUMNS), 5
UNARY = (tl.relu, tl.abs, halved, tl.sigmoid)
BINARY = (tl.add, tl.sub, tl.maximum)


def load(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value, at: int) -> None:
    values.append(tl.load(ends.source + at, BLOCK))


def begin(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    loads.append(tl.load_async(ends.source, BLOCK))


def begin_over(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    loads.append(tl.load_async(ends.source, BLOCK, out=first))


def wait(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    if loads:
        values.append(loads.pop(0).wait())


def unary(
    values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value, function: Any
) -> None:
    values.append(function(first))


def binary(
    values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value, function: Any
) -> None:
    values.append(function(first, values[-1]))


def number(
    values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value, factor: Any, term: Any
) -> None:
    values.append(first * factor + term)


def chain(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(tl.fused(normalised, first, values[-1]))


def chain_over(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    tl.fused(halved, first, out=first)


def chain_beside(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.extend(tl.fused_async(both, first, values[-1]).wait())


def part(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value, row: int) -> None:
    tl.store(ends.target + row * COLUMNS, first[row : row + 1])


def turned(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(tl.trans(first.mT))
    tl.store(ends.target, first.mT, (1, COLUMNS))


def shaped(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(first.reshape(COLUMNS, ROWS).mT.reshape(ROWS, COLUMNS))


def rows(
    values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value, named: tuple[int, ...]
) -> None:
    values.append(tl.gather(ends.source, named, COLUMNS, (COLUMNS, 1)))


def cast(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(first.to(tl.float16).to(tl.float32))


def product(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    right = values[-1].mT.reshape(COLUMNS, ROWS)
    values.append(tl.dot(first, right)[:, :1] + first)


def scope(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    with tl.scratch():
        inner = tl.load(ends.source, BLOCK) + first
        pending = tl.store_async(ends.target, inner)
    pending.wait()


def store(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    tl.store(ends.target, first)


def over_empty(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(tl.fused(tl.abs, first, out=tl.empty(BLOCK, tl.float32)))


def scaled(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(tl.fma(ends.number - first, 0.25, tl.full(BLOCK, ends.number, tl.float32)))


def bounded(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    low, high = -ends.number * 0.5 - 1, 3 - (1 + ends.number) / 4
    values.append(tl.clamp(first, low, high) + tl.where(first > ends.number, ends.number, first))


def weighted(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    weight = ends.number * 0.125

    def mixed(x: tl.Value, y: tl.Value) -> tl.Value:
        return x * weight + y * (1.0 - weight) - tl.sum(y, axis=1, keep_dims=True) / ends.number

    values.append(tl.fused(mixed, first, values[-1]))


def by_sign(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(first * ends.number if ends.number > 0 else first - ends.number)


def by_row(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    row = min(ROWS - 1, int(abs(ends.number)))
    tl.store(ends.target + row * COLUMNS, first[row : row + 1] + ends.number)


def rooted(values: list[tl.Value], loads: list[Any], ends: Ends, first: tl.Value) -> None:
    values.append(first * math.sqrt(ends.number * ends.number + 1) + sum((ends.number, 1.5, 0.1)))


PLAIN = (
    *(scaled, bounded, weighted),
    *(begin, begin_over, wait, wait, chain, chain_over, chain_beside, turned, shaped, cast),
    *(product, scope, store, over_empty),
)


READING = by_sign, by_row, rooted
"""Acts that depend on the number itself, and not on its place alone."""


def follow(recipe: Recipe, x: tl.Pointer, y: tl.Pointer, number: float, start: int) -> None:
    """The acts of a recipe on the elements of a program from `start` on, in the order given."""
    ends = Ends(x + start, y + start, number)
    values, loads = [tl.load(ends.source, BLOCK)], list[Any]()
    for function, choice, *given in recipe:
        function(values, loads, ends, values[choice % len(values)], *given)
    for each in loads:
        each.wait()
    tl.store(ends.target, values[-1])


def by_id(recipe: Recipe, x: tl.Pointer, y: tl.Pointer, number: float) -> None:
    """Kernel: a recipe on the elements that belong to the PE."""
    follow(recipe, x, y, number, (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * SIZE)


def leaving(recipe: Recipe, x: tl.Pointer, y: tl.Pointer, number: float) -> None:
    """Kernel: the same, and a load for which it does not wait."""
    by_id(recipe, x, y, number)
    tl.load_async(x, 2 * SIZE)


def by_program(recipe: Recipe, x: tl.Pointer, y: tl.Pointer, number: float) -> None:
    """Kernel: a recipe on the elements of a program of a grid."""
    follow(recipe, x, y, number, tl.program_id(0) * SIZE)


def replicated(recipe: Recipe, x: tl.Pointer, y: tl.Pointer, number: float) -> None:
    """Kernel: a recipe on elements of which each PE has a replica."""
    tl.barrier("cube")
    follow(recipe, x, y, number, 0)
    tl.barrier()


def reading(recipe: Recipe, x: tl.Pointer, y: tl.Pointer, number: float) -> None:
    """Kernel that reads an element, so that it has no list."""
    by_id(recipe[:2], x, y, number)
    tl.device_assert(tl.load(x, 1) < 1e9)


def _act(draw: Random) -> Act:
    choice = draw.randrange(8)
    named = tuple(draw.randrange(ROWS) for _ in range(ROWS))
    numbers = draw.choice((0.5, 2, -0.0)), draw.choice((0.0, -1.5, 3))
    return draw.choice(
        (
            *((function, choice) for function in PLAIN),
            (draw.choice(READING), choice),
            (load, choice, draw.randrange(ROWS)),
            (part, choice, draw.randrange(ROWS)),
            (unary, choice, draw.choice(UNARY)),
            (binary, choice, draw.choice(BINARY)),
            (number, choice, *numbers),
            (rows, choice, named),
        )
    )


Launch = Callable[[Sequence[torch.Tensor], int, int], object]
"""A launch on some of the tensors, of a rank, in a turn."""
NUMBERS = 0.0, -0.0, 0.1, 0.5, 1.0, 2.0, -1.25, 3.0, 1e-45, 1e30, math.inf, math.nan


def _numbers(draw: Random) -> tuple[float, ...]:
    """A number for each turn: equal ones, or others."""
    chosen = draw.sample(NUMBERS, draw.randint(1, 4))
    return tuple(draw.choice(chosen) for _ in range(TURNS))


class _Kernel(NamedTuple):
    """A launch of one of the kernels above, on two of the tensors."""

    kernel: Callable[..., None]
    recipe: Recipe
    tensors: tuple[int, int]
    grid: tuple[int, ...] | None
    numbers: tuple[float, ...]

    def __call__(self, tensors: Sequence[torch.Tensor], rank: int, turn: int) -> object:
        x, y = (tensors[each] for each in self.tensors)
        number = self.numbers[turn]
        return torch.launch("kernel", self.kernel, self.recipe, x, y, number, grid=self.grid)


def _operator(draw: Random) -> Launch:
    """An operator of the device on tensors of one placement."""
    a, b = draw.sample(range(4), 2)
    numbers = _numbers(draw)
    return draw.choice(
        (
            lambda tensors, _, __: tensors[a].add_(tensors[b]),
            lambda tensors, _, turn: tensors[a].mul_(numbers[turn]),
            lambda tensors, _, turn: tensors[a].add_(numbers[turn]),
            lambda tensors, _, __: tensors[a].copy_(tensors[b]),
            lambda tensors, _, turn: tensors[a].fill_(numbers[turn]),
            lambda tensors, _, __: torch.exp(torch.clamp(tensors[a], -2, 2)),
            lambda tensors, _, __: tensors[a].sum(),
        )
    )


def _disturbance(draw: Random, sips: int) -> Launch:
    """Something beside the launches: a collective, a message, a copy of the host, a stream."""
    a = draw.randrange(4)

    def on_stream(tensors: Sequence[torch.Tensor], _: int, __: int) -> None:
        with torch.ahbm.stream(torch.ahbm.Stream()):
            torch.relu(tensors[a])

    def message(tensors: Sequence[torch.Tensor], rank: int, _: int) -> object:
        return dist.irecv(tensors[a], 0) if rank else dist.isend(tensors[a], 1)

    def reduced(tensors: Sequence[torch.Tensor], _: int, __: int) -> object:
        return dist.all_reduce(tensors[a], async_op=True)

    kinds: list[Launch] = [
        lambda tensors, _, __: tensors[a].__setitem__(slice(SIZE), np.ones(SIZE, np.float32)),
        lambda tensors, _, __: tensors[a].numpy().sum(),
        on_stream,
    ]
    if sips > 1:
        kinds += [reduced, reduced, message]
    return draw.choice(kinds)


def _launches(draw: Random) -> list[Launch]:
    launches: list[Launch] = []
    for _ in range(draw.randint(2, 4)):
        recipe = tuple(_act(draw) for _ in range(draw.randint(1, 7)))
        pair = draw.choice(((0, 1), (1, 0), (2, 3), (3, 3)))
        kernel = draw.choice((by_id, by_id, leaving, by_program, reading))
        grid = (draw.randint(1, 3),) if kernel is by_program else None
        launches.append(_Kernel(kernel, recipe, pair, grid, _numbers(draw)))
        if draw.random() < 0.3:
            launches.append(_Kernel(replicated, recipe, (4, 5), None, _numbers(draw)))
        if draw.random() < 0.6:
            launches.append(_operator(draw))
    return launches


def _tensors(rank: int) -> list[torch.Tensor]:
    """Four tensors with elements for each PE, and two with replicas."""
    device = torch.ahbm.get_device_properties()
    count = (device.cubes * device.pes_per_cube + 1) * SIZE
    placed, everywhere = DPPolicy(cube="row_wise", pe="row_wise"), DPPolicy()
    values = np.linspace(-2, 2, count, dtype=np.float32)
    tensors = [torch.from_numpy(values * (each + 1 + rank), dp=placed) for each in range(4)]
    # Twice the size: a load may begin behind the first element.
    replicas = [torch.from_numpy(values[: 2 * SIZE] + each, dp=everywhere) for each in range(2)]
    return [*tensors, *replicas]


def random_program(draw: Random, sips: int) -> Callable[[int], list[Any]]:
    """A program that repeats its launches four or five times, and disturbs some of them."""
    launches, turns = _launches(draw), draw.randint(4, TURNS)
    disturbed = {
        (draw.randrange(turns), draw.randrange(len(launches))): _disturbance(draw, sips)
        for _ in range(draw.randint(0, 4))
    }
    moves = draw.random() < 0.3

    def program(rank: int) -> list[Any]:
        tensors, works = _tensors(rank), list[Any]()
        if sips > 1:
            dist.init_process_group()
        for turn in range(turns):
            for place, launch in enumerate(launches):
                if (turn, place) in disturbed:
                    works.append(disturbed[turn, place](tensors, rank, turn))
                launch(tensors, rank, turn)
            if moves:
                # Other addresses, and the same commands.
                tensors[0] = tensors[0].clone()
        for work in works:
            if isinstance(work, dist.Work):
                work.wait()
        return [each.numpy() for each in tensors] if torch.ahbm.has_data() else []

    return program


def random_run(seed: int, *, differ: bool = False) -> Simulation | Exception:
    """The run of a seed, recorded, or its error; on a machine whose parts `differ`, or which is
    uniform.
    """
    draw = Random(seed)
    sips, topology = draw.choice((1, 1, 2)), variant_text(**hardware(draw))
    if differ:
        topology = with_random_overrides(topology, seed, sips)
    data, record = draw.random() < 0.85, draw.random() < 0.5
    program = random_program(draw, sips)
    try:
        return simulate(program, sips, topology=topology, data=data, record=record)
    # A random kernel may load behind its tensor, or store what it has not waited for.
    except Exception as error:  # noqa: BLE001 - the errors are compared
        return error
