"""Names under which CUPTI counts samples, which are metrics of Nsight Compute's."""

import re

from msgspec import Struct

_NAME = re.compile(r"smsp__pcsamp_warps_issue_stalled_([a-z0-9_]+?)(_not_issued)?")


class CuptiReason(Struct, frozen=True, kw_only=True):
    """What CUPTI counts under one name."""

    name: str  # Nsight Compute's spelling of the stall reason
    is_latency: bool  # of samples in cycles in which nothing was issued


def read_reason(name: str) -> CuptiReason | None:
    """What a name of CUPTI's stands for; None where it is no stall reason: counts of samples, and of those that were lost.

    >>> read_reason("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued")
    CuptiReason(name='long_scoreboard', is_latency=True)
    >>> read_reason("smsp__pcsamp_sample_count") is None
    True
    """
    match = _NAME.fullmatch(name)
    return None if match is None else CuptiReason(name=match[1], is_latency=match[2] is not None)
