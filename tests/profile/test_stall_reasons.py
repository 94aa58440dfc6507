"""Every reason the corpus' architectures have is described; unknown ones are shown as themselves."""

from gpa_lsp.profile.stall_reasons import OTHER, STALL_REASONS, describe_stall_reason

_SEEN = [
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard"),
    *("math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instructions", "not_selected", "selected"),
    *("short_scoreboard", "sleeping", "tex_throttle", "wait", "warpgroup_arrive"),
]


def test_every_reason_seen_in_reports_is_described() -> None:
    assert sorted(STALL_REASONS) == _SEEN
    for name, reason in STALL_REASONS.items():
        assert reason.name == name
        assert reason.description
        assert not reason.description.endswith(".")


def test_only_two_reasons_are_no_stall() -> None:
    assert {name for name, reason in STALL_REASONS.items() if not reason.is_stall} == {"selected", "not_selected"}


def test_an_unknown_reason_is_shown_as_such() -> None:
    reason = describe_stall_reason("tma_wait")
    assert (reason.name, reason.group, reason.is_stall) == ("tma_wait", OTHER, True)
    assert "tma_wait" in reason.description
