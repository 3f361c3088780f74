"""The four panels of the study: one or several users, prefill or decode."""

from enum import StrEnum


class AttentionPanel(StrEnum):
    """A panel, by the name it has in the results file."""

    SINGLE_USER_PREFILL = "single_user_prefill"
    SINGLE_USER_DECODE = "single_user_decode"
    MULTI_USER_PREFILL = "multi_user_prefill"
    MULTI_USER_DECODE = "multi_user_decode"

    @property
    def is_decode(self) -> bool:
        """Whether one query attends to many keys; else there is a query for every key."""
        return self in {AttentionPanel.SINGLE_USER_DECODE, AttentionPanel.MULTI_USER_DECODE}

    @property
    def is_single_user(self) -> bool:
        """Whether one user has all ranks of the panel."""
        return self in {AttentionPanel.SINGLE_USER_PREFILL, AttentionPanel.SINGLE_USER_DECODE}
