"""A launch of a Triton kernel as the program has written it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class TritonCall(NamedTuple):
    """A kernel with the arguments and keywords of a launch, and its grid, or the function of it."""

    kernel: Any
    arguments: Sequence[Any]
    options: Mapping[str, Any]
    grid: Any

    def named(self) -> dict[str, Any]:
        """The arguments by the names of the parameters, with the keywords."""
        names = self.kernel.arg_names
        return {**dict(zip(names, self.arguments, strict=False)), **self.options}

    def inner(self, options: Mapping[str, Any]) -> "TritonCall":
        """The same launch of the kernel that a decorator holds, with more keywords."""
        return TritonCall(self.kernel.fn, self.arguments, {**self.options, **options}, self.grid)
