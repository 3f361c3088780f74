"""Names of calls of the vector engine in the records of a run, from which a reader can compute the
elements of a mask: those of `arange`, of comparisons and of integers need no data.

    math lt(., 40)                                 a value, compared with 40
    math where(., ., float)                        a mask, a value and a number with a fraction
    chain lt(0, #40):bool[64]; where(1, 0, #0):i32[64] -> 2

`.` is the next block that the call reads. Values of a chain have numbers, first the blocks that it
reads, then the results of its steps. Numbers with a fraction are left out: those of a launch may
differ between launches that are folded into one.
"""

from collections.abc import Sequence
from functools import lru_cache

from runtime.language.chain import Chain, ChainPlan
from runtime.language.value import Shape, Value

_StepOperands = tuple[Shape | int | None, ...]
"""The operands of a step: shapes of values, integers, None for other numbers."""


def math_text(name: str, operands: Sequence[Value | float]) -> str:
    """The name of an operation, with its integers, and of a selection with all operands."""
    if name != "where" and int not in map(type, operands):
        return f"math {name}"
    texts = ["." if isinstance(each, Value) else _number(each) for each in operands]
    return f"math {name}({', '.join(texts)})"


def chain_text(chain: Chain) -> str:
    """The name of a chain, with its steps if it selects elements or returns a mask or integers."""
    if not _is_followed(chain.plan):
        return "chain"
    operands: list[_StepOperands] = [
        tuple([each.shape if isinstance(each, Value) else _integer(each) for each in step.operands])
        for step in chain.steps
    ]
    reductions = tuple([(step.axis, step.keep_dims) for step in chain.steps])
    return _steps_text(chain.plan, tuple(operands), reductions)


def _integer(number: float) -> int | None:
    return number if type(number) is int else None


def _number(number: float) -> str:
    return str(number) if type(number) is int else "float"


@lru_cache(maxsize=4096)
def _is_followed(plan: ChainPlan) -> bool:
    returned = (plan.values[number].dtype for number in plan.results)
    selects = any(step.name == "where" for step in plan.steps)
    return selects or not all(each.is_floating_point for each in returned)


@lru_cache(maxsize=4096)
def _steps_text(
    plan: ChainPlan,
    operands: tuple[_StepOperands, ...],
    reductions: tuple[tuple[int | None, bool], ...],
) -> str:
    texts = list[str]()
    for step, own, (axis, keeps) in zip(plan.steps, operands, reductions, strict=True):
        inputs = iter(step.inputs)
        given = [
            f"{next(inputs)}{_lengths(each)}"
            if isinstance(each, tuple)
            else "float"
            if each is None
            else f"#{each}"
            for each in own
        ]
        if step.reduces:
            given.append(f"axis={axis}, keep={int(keeps)}")
        shape = _lengths(step.result.shape)
        texts.append(f"{step.name}({', '.join(given)}):{step.result.dtype.name}{shape}")
    return f"chain {'; '.join(texts)} -> {', '.join(map(str, plan.results))}"


def _lengths(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"
