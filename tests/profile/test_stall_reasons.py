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
        assert reason.is_stall == (name not in ("selected", "not_selected"))
    reason = describe_stall_reason("tma_wait")
    assert (reason.name, reason.group, reason.is_stall) == ("tma_wait", OTHER, True)
    assert "tma_wait" in reason.description
