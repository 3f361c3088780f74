"""The state of matrix products, as Python sees it."""

from sip_node.compiled.pipeline import Pipeline
from sip_node.compiled.state_vector import StateVector
from sip_node.compiled.state_walk import StateWalk

class ProductWalk(StateWalk):
    foreign_ps: int
    def __init__(self, calendar: object, pipelines: list[Pipeline]) -> None: ...
    def read(self) -> StateVector: ...
    def shift(self, first: StateVector, second: StateVector, periods: int) -> None: ...
