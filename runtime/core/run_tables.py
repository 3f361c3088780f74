"""Defines the tables of a recorded run: operations, programs, steps, commands and loads of links.

An LP packs rows as the fields below, little-endian; a text is an index of the list of texts of its
SIP. The coordinator writes every table of every SIP as a Parquet file with the same columns, texts
as dictionaries. Times are integer picoseconds; -1 is "none".
"""

from enum import IntEnum, StrEnum
from struct import Struct
from typing import NamedTuple

NONE = -1
"""No operation, step, command or PE."""
RANK_PROGRAM = 0
"""`program` of the rank program of a SIP; kernels have the numbers above."""
RECORDS = "records"
"""The directory of the tables in that of a run."""
BIN_PS = "bin_ps"
"""Key of the width of a time bin in the metadata of a file of links."""
LEAST_BIN_PS = 1024
"""The least width of a time bin."""
MOST_BINS = 512
"""Time bins of a run; the width of a bin is the least power of two times 1,024 ps for which they
suffice. A page of `web` has no room for more, and rows of loads are most of the records of a run.
"""


class Cause(StrEnum):
    """The cause of a wait of an operation or of a step of a program."""

    NONE = ""
    OPERAND = "operand"
    """Data of a memory."""
    SLOT = "slot"
    """A slot that the peer fills."""
    CREDIT = "credit"
    """A credit, that is an empty slot at the peer."""
    PEER = "peer"
    """Other PEs in a barrier."""
    LINK = "link"
    """Packets of other transfers on a link."""
    MEMORY = "memory"
    """Packets of other transfers at a memory."""
    CHANNEL = "channel"
    """A channel of the DMA engine."""
    ENGINE = "engine"
    """An engine with earlier work, or the result of one."""
    LAUNCH = "launch"
    """The start of a kernel on its way from the host."""
    COMMAND = "command"
    """A command of a stream."""


class BlockAccess(IntEnum):
    """The use of a block by a call."""

    READ = 0
    WRITE = 1
    MAKE = 2
    """The block is new, and its elements are undefined."""


class Order(StrEnum):
    """The reason for which a command waits for an earlier one."""

    STREAM = "stream"
    """Both are in one stream."""
    EVENT = "event"
    """The program ordered its stream behind it: by an event, a stream or a collective."""
    TENSOR = "tensor"
    """Both use one tensor."""
    PE = "pe"
    """Both are launches on one hardware thread of a PE."""


class Form(StrEnum):
    """The forms of a column: numpy's code for numbers, or an index of the list of texts."""

    INT16 = "<i2"
    INT32 = "<i4"
    INT64 = "<i8"
    FLAG = "|u1"
    TEXT = "text"


_PACKED = {Form.INT16: "h", Form.INT32: "i", Form.INT64: "q", Form.FLAG: "B"}


class RunColumn(NamedTuple):
    """A column of a table."""

    name: str
    form: Form

    @property
    def packed(self) -> Form:
        """The form of the column in a packed row."""
        return Form.INT32 if self.form is Form.TEXT else self.form


class RunTable(NamedTuple):
    """A table and its columns, in the order of a packed row."""

    name: str
    columns: tuple[RunColumn, ...]

    @property
    def row_bytes(self) -> int:
        """The bytes of a packed row."""
        return sum(int(column.packed[2:]) for column in self.columns)

    @property
    def packer(self) -> Struct:
        """Packs the values of a row, in the order of the columns."""
        return Struct("<" + "".join(_PACKED[column.packed] for column in self.columns))

    def file(self, sip: int) -> str:
        """The name of the file of a SIP."""
        return f"sip{sip}.{self.name}.parquet"


def _table(table: str, **columns: Form) -> RunTable:
    return RunTable(table, tuple(RunColumn(*each) for each in columns.items()))


OPS = _table(
    "ops",
    engine=Form.TEXT,
    name=Form.TEXT,
    cube=Form.INT16,
    pe=Form.INT16,
    start_ps=Form.INT64,
    end_ps=Form.INT64,
    address=Form.INT64,
    read_address=Form.INT64,
    nbytes=Form.INT64,
    flow_source=Form.INT16,
    flow_target=Form.INT16,
    flow_sequence=Form.INT64,
    flow_end=Form.FLAG,
    requested_ps=Form.INT64,
    cause=Form.TEXT,
    link_ps=Form.INT64,
    link=Form.TEXT,
    memory_ps=Form.INT64,
    step=Form.INT64,
)
"""Row i belongs to record i of the op log of the SIP.

`requested_ps` is the time of the request, so that the operation waited `start_ps - requested_ps`
for its engine. `link_ps` is the longest time for which one of its packets queued behind packets of
other transfers at links, and `link` the link where that packet queued longest; `memory_ps` the same
at memories. `cause` is the longest of these waits. `step` is the step of the call of a kernel that
issued it, tiles of products and slots of messages included.
"""

PROGRAMS = _table(
    "programs",
    program=Form.INT32,
    cube=Form.INT16,
    pe=Form.INT16,
    kernel=Form.TEXT,
    thread=Form.TEXT,
    command=Form.INT32,
    line=Form.TEXT,
    begin_ps=Form.INT64,
    end_ps=Form.INT64,
)
"""The rank program and the kernels, in the order of their ends. `command` launched the kernel, and
`line` is that of the launch in the rank program.
"""

STEPS = _table(
    "steps",
    step=Form.INT64,
    program=Form.INT32,
    operation=Form.TEXT,
    line=Form.TEXT,
    begin_ps=Form.INT64,
    issued_ps=Form.INT64,
    end_ps=Form.INT64,
    cause=Form.TEXT,
    released_by=Form.INT64,
    direction=Form.TEXT,
    peer_sip=Form.INT16,
    peer_cube=Form.INT16,
    peer_pe=Form.INT16,
    scratch_bytes=Form.INT32,
)
"""The intervals in which a program is blocked by one call, in the order of their ends.

Between its steps a program takes no time, so they tile it. The command that the call issues costs
`issued_ps - begin_ps`. `released_by` is the operation whose end ended the step, if there is one.
`scratch_bytes` is what the kernel uses of its scratch in TCM during the step.
"""

COMMANDS = _table(
    "commands",
    command=Form.INT32,
    stream=Form.INT32,
    kind=Form.TEXT,
    why=Form.TEXT,
    line=Form.TEXT,
    submitted_ps=Form.INT64,
    departed_ps=Form.INT64,
    begun_ps=Form.INT64,
    end_ps=Form.INT64,
    after=Form.INT32,
)
"""The commands of the host, in the order of their ends: sent at `departed_ps`, begun by the IO_CPU
at `begun_ps`, answered at `end_ps`. `after` is the command whose end it waited for last.
"""

LINKS = _table(
    "links",
    link=Form.TEXT,
    kind=Form.TEXT,
    bin=Form.INT64,
    nbytes=Form.INT64,
    busy_ps=Form.INT64,
    queued_ps=Form.INT64,
    packets=Form.INT64,
)
"""The load of every link, and of every port and channel of a memory, in the bins in which it has
any: the bytes and packets whose service begins in the bin, the time in it for which the link is
busy, and the time for which these packets queued.

A SIP sends the begins of its bins, in units of `LEAST_BIN_PS`, as `bin`. In a file it is the number
of the bin, of one width for all SIPs.
"""

CALLS = _table(
    "calls",
    call=Form.INT64,
    program=Form.INT32,
    operation=Form.TEXT,
    line=Form.TEXT,
    begin_ps=Form.INT64,
    end_ps=Form.INT64,
    awaits=Form.INT64,
    command=Form.INT32,
    queue=Form.TEXT,
    slots=Form.INT32,
    depth=Form.INT32,
)
"""The calls of programs that use data or order it, in the order of their ends; `call` counts them
in the order of their begins.

`awaits` is the call whose operation in flight a wait waited for; a wait of no length has a row too.
`command` is the command that the rank program submits, or waits for. A send or a receive has its
queue, by the receiving end, the slots of the message, and those of the ring (`depth`).
"""

BLOCKS = _table(
    "blocks",
    call=Form.INT64,
    access=Form.FLAG,
    in_memory=Form.FLAG,
    address=Form.INT64,
    nbytes=Form.INT64,
    dtype=Form.TEXT,
    shape=Form.TEXT,
    strides=Form.TEXT,
)
"""The blocks of elements that a call reads or writes, at physical addresses: in a memory behind
pointers (`in_memory`), or values of a kernel in TCM. `access` is a `BlockAccess`. Lengths and
strides of axes are texts such as `32,64`; strides count elements, and are empty without gaps.
"""

ORDERS = _table("orders", command=Form.INT32, after=Form.INT32, reason=Form.TEXT, tensor=Form.TEXT)
"""All earlier commands for which a command waits, complete at its submission or not, with the
`Order` that is the reason, and the tensor that both use if it is that.
"""

MEMORY = _table(
    "memory",
    tensor=Form.INT32,
    call=Form.INT64,
    name=Form.TEXT,
    line=Form.TEXT,
    made_ps=Form.INT64,
    address=Form.INT64,
    nbytes=Form.INT64,
    item_bytes=Form.INT16,
    block=Form.INT32,
    over=Form.INT32,
    first=Form.INT32,
    last=Form.INT32,
)
"""The tensors of the rank program, in the order in which it made them: at `call`, in `line`, with
`nbytes` from the virtual `address` on, in the memory `block`, with elements of `item_bytes`, 1 in a
storage of PyTorch, whose tensors may have any type; `over` is the tensor, now dead, whose
memory it took over, or -1. `first` and `last` are the first and the last command that use it.
"""

SHARDS = _table(
    "shards",
    block=Form.INT32,
    cube=Form.INT16,
    pe=Form.INT16,
    offset=Form.INT64,
    address=Form.INT64,
    nbytes=Form.INT64,
)
"""The parts of the blocks of memory of tensors: at a physical `address`, `offset` bytes behind the
begin of the block.
"""

TABLES = (OPS, PROGRAMS, STEPS, COMMANDS, LINKS, CALLS, BLOCKS, ORDERS, MEMORY, SHARDS)
