"""Table 1 as data: complete, without gaps, and each stall in one place."""

from collections import Counter

import pytest

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.analyses.starlight.suggestions import (
    Bottleneck,
    Direction,
    Part,
    WaiterKind,
    classify_waiter,
    find_row,
    find_target,
    list_feeds,
    list_rows,
    list_suggestions,
)
from gpa_lsp.profile.stall_reasons import STALL_REASONS


def test_the_rows_are_those_of_the_paper():
    assert [(row.bottleneck, row.direction) for row in list_rows()] == [
        (Bottleneck.LATENCY, Direction.UP),
        (Bottleneck.MEMORY, Direction.UP_RIGHT),
        (Bottleneck.RESOURCES, Direction.UP),
        (Bottleneck.SYNCHRONISATION, Direction.UP),
        (Bottleneck.LOW_INTENSITY, Direction.RIGHT),
    ]
    assert Counter(suggestion.bottleneck for suggestion in list_suggestions()) == {
        Bottleneck.LATENCY: 3,
        Bottleneck.MEMORY: 3,
        Bottleneck.RESOURCES: 2,
        Bottleneck.SYNCHRONISATION: 4,
        Bottleneck.LOW_INTENSITY: 2,
    }


def test_every_stall_reason_of_every_kind_of_instruction_is_said_once():
    said = Counter()
    for feed in list_feeds():
        assert feed.because
        for kind in WaiterKind if feed.kind is None else (feed.kind,):
            said[feed.reason, kind] += 1
    assert said == {(reason, kind): 1 for reason in STALL_REASONS for kind in WaiterKind}


def test_issues_are_operations_and_everything_else_is_a_stall():
    for reason in STALL_REASONS:
        targets = {find_target(reason, kind) for kind in WaiterKind}
        assert (Part.OPERATION in targets) == (reason == "selected")
        if reason == "selected":
            assert targets == {Part.OPERATION}
        # The roofline's row is fed by no stall.
        assert Bottleneck.LOW_INTENSITY not in targets


def test_a_reason_nobody_knows_is_not_attributed():
    assert find_target("flux_capacitor", WaiterKind.MEMORY) is Part.NONE


def test_a_ready_warp_that_was_not_picked_lost_nothing():
    assert find_target("not_selected", WaiterKind.OTHER) is Part.NONE


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (WaiterKind.MEMORY, Bottleneck.MEMORY),
        (WaiterKind.OTHER, Bottleneck.RESOURCES),
        (WaiterKind.UNKNOWN, Part.NONE),
    ],
)
def test_the_shared_queue_counts_by_the_instruction_that_waits(kind: WaiterKind, target: Bottleneck | Part):
    assert find_target("mio_throttle", kind) is target


def test_counterparts_are_optimizers_of_ours():
    named = {name for suggestion in list_suggestions() for name in suggestion.counterparts}
    assert named <= set(list_optimizers())
    assert {"code_reordering", "global_coalescing", "thread_increase"} <= named


def test_without_a_disassembly_the_kind_is_unknown():
    assert classify_waiter(None) is WaiterKind.UNKNOWN
    assert find_row(Bottleneck.MEMORY).title == "Poor memory usage"
