from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="link-never-busy",
        file="sip_node/chip/fabric/server.py",
        old="self.free_ps = tail\n",
        new="self.free_ps = start\n",
        breaks="A link is busy until the tail of a packet has left.",
        noticed_by="c.sink",
    ),
)
