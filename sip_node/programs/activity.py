"""Reports what the ranks of an LP do, from which the coordinator sees who keeps whom waiting."""

from runtime.torch.rank_state import ProcessGroup
from runtime.wire.control import GroupCalls, RankActivity, SlowCall
from sip_node.programs.rank import Rank


def activity(rank: Rank) -> RankActivity:
    """What a rank has done so far. Another thread may call it."""
    groups = tuple(_calls(group) for group in rank.state.limited_groups)
    return RankActivity(rank.rank, rank.state.clock.total_s, groups)


def _calls(group: ProcessGroup) -> GroupCalls:
    is_open = ((number, name) for number, name, handle in group.open_calls if not handle.done)
    number, name = next(is_open, (0, ""))
    return GroupCalls(
        group=group.title,
        ranks=group.sips,
        timeout_s=group.timeout_s,
        calls=group.calls,
        open_call=number,
        open_name=name,
        slow_calls=tuple(SlowCall(*call) for call in group.slow_calls),
    )
