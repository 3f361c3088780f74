"""The launch of one chip among those that exchange messages: its key, its PEs, its queues."""

from typing import NamedTuple

from runtime.core.coordinates import PeCoordinates
from sip_node.chip.exchanges.credit import Key, NotAlone
from sip_node.chip.host.launch_events import LaunchBegin
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.launches.chip_state import ChipState
from sip_node.chip.pe.queue_table import QueueState, QueueTable


class ExchangeMember(NamedTuple):
    """A launch that begins on a chip, with its key, the queue tables of its PEs, and the queues in
    them.
    """

    chip: ChipState
    begin: LaunchBegin
    key: LaunchKey
    tables: tuple[QueueTable, ...]
    queues: tuple[QueueState, ...]

    @property
    def state(self) -> Key:
        """All that decides what the launch does, but for what is on its way."""
        credits_out = [each.pair.n_slots - each.credits for each in self.queues]
        unread = [each.filled - each.taken for each in self.queues]
        return self.key.commands, tuple(credits_out), tuple(unread)

    def call(self) -> None:
        """The queues have served its call."""
        for each in self.tables:
            each.call = self.begin.launch.call or each.call


def member_of(chip: ChipState, begin: LaunchBegin) -> ExchangeMember:
    """The launch that begins on a chip; raises `NotAlone` where its PEs are not idle, or where it
    has no key.
    """
    launch, context = begin.launch, chip.context
    key = context.launch_keys.exchange_key(context.sip, begin.number, launch)
    # A trace of slots has their times.
    if key is None or chip.log.transferred is not None:
        raise NotAlone
    tables = list[QueueTable]()
    queues = list[QueueState]()
    for place in launch.pes:
        pe = chip.chip.pe(PeCoordinates(context.sip, *place))
        table = pe.ipcq.table(launch.queues)
        if pe.cpu.running or table.user:
            raise NotAlone
        tables.append(table)
        queues += table.queues
    if any(each.arrived or each.is_starved for each in queues):
        raise NotAlone
    return ExchangeMember(chip, begin, key, tuple(tables), tuple(queues))
