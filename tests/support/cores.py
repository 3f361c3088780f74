"""Classes of the user, for tests that run one machine in both modes."""

from sip_node.chip.fabric.server import Server


class LateServer(Server):
    """A class of `impl:`: a link of the compiled fabric with a method in Python."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        return super().reserve(head_ps + 7, tail_ps + 7, nbytes)
