"""Stall reasons in plain words: what a warp in that state is stalled on, and the group of the reason.

Reasons are open text, not an enum: every architecture has its own set (``imc_miss`` up to compute capability 9.0, ``warpgroup_arrive`` on 9.0
only) and a later profiler may bring new ones. An unknown reason is shown under its own name.
"""

import re
from functools import lru_cache

from msgspec import Struct

MEMORY = "memory"
EXECUTION = "execution"
SYNCHRONISATION = "synchronisation"
INSTRUCTION_SUPPLY = "instruction supply"
THROTTLE = "throttle"
ISSUED = "issued"
OTHER = "other"


class StallReason(Struct, frozen=True, kw_only=True):
    """One warp state."""

    name: str  # Nsight Compute's spelling, without prefix and without ``_not_issued``
    group: str  # one of this module's group names; ``other`` for an unknown reason
    description: str  # one sentence for people, without full stop
    # the warp could not issue; False for ``selected`` (it issued) and ``not_selected`` (it could have)
    is_stall: bool = True


_ROWS = (
    ("barrier", SYNCHRONISATION, "waiting at a block barrier for the other warps of the block"),
    (
        "branch_resolving",
        INSTRUCTION_SUPPLY,
        "waiting for a branch target to be computed and the program counter to be set",
    ),
    ("dispatch_stall", OTHER, "the dispatcher held the instruction back although it was ready"),
    ("drain", MEMORY, "finished, but waiting for its outstanding stores to leave the SM before it can exit"),
    ("imc_miss", MEMORY, "waiting for a constant-memory operand that missed the immediate constant cache"),
    ("lg_throttle", THROTTLE, "the queue for local and global memory instructions was full: too many of them in a row"),
    ("long_scoreboard", MEMORY, "waiting for data from global, local, texture or surface memory, through L1"),
    ("math_pipe_throttle", EXECUTION, "the arithmetic pipe this instruction needs was busy with other warps"),
    ("membar", SYNCHRONISATION, "waiting for a memory fence to complete"),
    ("mio_throttle", THROTTLE, "the queue for shared memory, special functions and dynamic branches was full"),
    ("misc", OTHER, "held back for a reason the hardware does not name"),
    (
        "no_instructions",
        INSTRUCTION_SUPPLY,
        "waiting for its next instruction to be fetched: instruction cache miss or jump",
    ),
    (
        "short_scoreboard",
        MEMORY,
        "waiting for a result of shared memory, a special function, a shuffle or a conversion",
    ),
    ("sleeping", SYNCHRONISATION, "every thread of the warp was asleep (nanosleep) or had yielded"),
    ("tex_throttle", THROTTLE, "the queue for texture instructions was full"),
    ("wait", EXECUTION, "waiting out the fixed latency of an instruction before it"),
    ("warpgroup_arrive", SYNCHRONISATION, "waiting for the warp group before a warp-group matrix instruction"),
)

# The reasons known, by name.
#
# Source: names as they occur in reports of compute capability 7.0 to 12.0; meanings after the warp-state tables of the Nsight Compute profiling
# guide, in our own words.
STALL_REASONS: dict[str, StallReason] = {
    **{name: StallReason(name=name, group=group, description=text) for name, group, text in _ROWS},
    "selected": StallReason(name="selected", group=ISSUED, description="issued an instruction", is_stall=False),
    "not_selected": StallReason(
        name="not_selected",
        group=ISSUED,
        description="ready to issue, but the scheduler picked another warp",
        is_stall=False,
    ),
}


def describe_stall_reason(name: str) -> StallReason:
    """Description of a reason; an unknown name comes back as itself, in group ``other``.

    >>> describe_stall_reason("long_scoreboard").group
    'memory'
    >>> describe_stall_reason("flux_capacitor").description
    'a warp state this version does not describe (flux_capacitor)'
    """
    known = STALL_REASONS.get(name)
    if known is not None:
        return known
    return StallReason(name=name, group=OTHER, description=f"a warp state this version does not describe ({name})")


# Metrics of Nsight Compute, and names under which CUPTI counts samples
_METRIC = re.compile(r"smsp__pcsamp_warps_issue_stalled_([a-z0-9_]+?)(_not_issued)?")

# Nsight Compute's spelling of a stall reason, and whether only samples in cycles in which nothing was issued are counted
CountedReason = tuple[str, bool]


@lru_cache(maxsize=1 << 13)  # the launches of a report have the same thousand metrics
def read_reason(metric: str) -> CountedReason | None:
    """Stall reason and kind of samples that a metric counts; None if it counts none.

    >>> read_reason("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued")
    ('long_scoreboard', True)
    >>> read_reason("smsp__pcsamp_sample_count") is None
    True
    """
    match = _METRIC.fullmatch(metric)
    return None if match is None else (match[1], match[2] is not None)
