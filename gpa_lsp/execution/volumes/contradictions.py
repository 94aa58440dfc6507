"""What no prediction may say: :func:`find_contradictions`.

A prediction that breaks one of these rules is wrong somewhere, and nobody knows where: it is a defect, which is shown as one in place of its numbers.
The published model is kept as it was published, and not held to them.
"""

from collections.abc import Iterator
from math import isfinite

from gpa_lsp.execution.volumes.model import Contradiction, Rule, VolumePrediction
from gpa_lsp.foundation.prose import Sentence, say, size

TOLERANCE_RATIO = 1e-6  # What sums of doubles may differ by


def find_contradictions(prediction: VolumePrediction) -> tuple[Contradiction, ...]:
    """Volumes of a launch that cannot be true together."""
    return tuple(
        Contradiction(rule=rule, low_name=low_name, low_bytes=low, high_name=high_name, high_bytes=high)
        for rule, low_name, low, high_name, high in _list_rules(prediction)
        if not (isfinite(low) and isfinite(high) and low <= high + TOLERANCE_RATIO * max(abs(low), abs(high), 1.0))
    )


def _list_rules(prediction: VolumePrediction) -> Iterator[tuple[Rule, str, float, str, float]]:
    """What must not be more than what."""
    volumes, counts, launch = prediction.volumes, prediction.counts, prediction.launch
    updates = launch.region.thread_count * launch.updates_per_thread
    per_block = launch.threads_per_block * counts.working_ratio * launch.updates_per_thread
    named = {
        "loads from L1": volumes.l1_load,
        "loads from L2": volumes.l2_load,
        "stores to L2": volumes.l2_store,
        "loads from DRAM": volumes.dram_load,
        "stores to DRAM": volumes.dram_store,
    }
    moved = {name: value * updates for name, value in named.items()}
    for name, value in moved.items():
        yield Rule.NOTHING_NEGATIVE, "nothing", 0.0, name, value
    # Atomics read in L2, DRAM gives more than a sector, and L2 completes sectors that were written in part: none of it passes L1.
    own = counts.block_atomic_bytes / per_block + volumes.dram_load_fetched + volumes.dram_load_partial
    in_l2 = moved["loads from L2"] + own * updates
    yield Rule.LEVELS, "loads from DRAM", moved["loads from DRAM"], "what L2 is asked for", in_l2
    yield Rule.LEVELS, "stores to DRAM", moved["stores to DRAM"], "stores to L2", moved["stores to L2"]
    yield Rule.LEVELS, "loads from L2", moved["loads from L2"], "loads from L1", moved["loads from L1"]
    yield (
        Rule.COMPULSORY,
        "sectors the launch reads",
        counts.launch_load_bytes,
        "loads from DRAM",
        moved["loads from DRAM"],
    )
    yield (
        Rule.COMPULSORY,
        "sectors the launch writes",
        counts.launch_store_bytes,
        "stores to DRAM",
        moved["stores to DRAM"],
    )


def describe_contradiction(found: Contradiction) -> Sentence:
    """One, as a sentence."""
    return say(
        "{rule}: {low} ({less}) are more than {high} ({more}).",
        rule=found.rule.value.capitalize(),
        low=found.low_name,
        less=size(found.low_bytes),
        high=found.high_name,
        more=size(found.high_bytes),
    )
