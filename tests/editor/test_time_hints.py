"""Times of described launches at the end of the kernel's first line."""

import os
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
from lsprotocol.types import InlayHint
from msgspec.structs import replace

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.document_view import OpenDocument, build_view
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.source.hints import MOST_CHARS, list_hints
from gpa_lsp.editor.timed.results import LaunchTime, SampleJob, SampleResult, TimedJob, TimedResult
from gpa_lsp.editor.timed.view import TimedState, make_state
from gpa_lsp.editor.timed.worker import WORK
from gpa_lsp.foundation.packed_records import pack_records
from tests.editor.predictions import JOB, NAME, SOURCE, TEXT
from tests.editor.views import make_knowledge, make_profile, make_snapshot
from tests.report_builder import build_kernel

BEFORE = LaunchTime(
    mangled_name=NAME,
    name="scale",
    shape="<<<16, 64>>>",
    gpu="Made-up GPU",
    median_ns=41_200.0,
    error_ns=100.0,
    launches=30,
    code="old",
    launch="first",
)
NOW = replace(BEFORE, median_ns=36_256.0, code="new")


def time(*times: LaunchTime, known: TimedState | None = None) -> TimedState:
    job = TimedJob(base=JOB, kept=SOURCE.with_name("kept"))
    return make_state(TimedResult(job=job, times=times), known)


def list_all(
    state: TimedState,
    text: str = TEXT,
    listing: str = "",
    *,
    metric: MetricKind = MetricKind.USUAL,
    is_on: bool = True,
    abilities: Abilities | None = None,
) -> Sequence[InlayHint]:
    snapshot = make_snapshot(make_profile(build_kernel(listing), texts={"k.cu": TEXT})) if listing else None
    settings = Settings(show_inlay_hints=is_on, metric=LineMetric(kind=metric))
    document = OpenDocument(uri=SOURCE.as_uri(), local_path=str(SOURCE), text=text, saved={None: text}, timed=state)
    view = build_view(document, make_knowledge(snapshot, settings, abilities))
    assert view is not None
    assert list_hints(view, 3, 99) == [hint for hint in list_hints(view, 1, 99) if hint.position.line >= 2]
    return list_hints(view, 1, 99)


def test_the_first_line_of_a_kernel_says_how_long_it_takes_and_what_the_edit_changed() -> None:
    (hint,) = list_all(time(BEFORE))
    assert (hint.position.line, hint.label) == (1, "measured 41.2 µs ± 0.1")
    (hint,) = list_all(time(NOW, known=time(BEFORE)))
    assert hint.label == "measured 36.3 µs ± 0.1 · 12 % faster"
    assert hint.tooltip == (
        "<<<16, 64>>> measured 36.3 µs ± 0.1, 12 % faster than before your edit: "
        "median of 30 launches on Made-up GPU, L2 overwritten before each; before 41.2 µs ± 0.1"
    )
    (hint,) = list_all(time(replace(BEFORE, code="new"), known=time(BEFORE)))
    assert hint.label == "measured 41.2 µs ± 0.1 · as fast as before"


def test_of_several_launches_the_longest_is_shown_and_the_tooltip_has_all() -> None:
    short = replace(BEFORE, median_ns=9_000.0, shape="<<<4, 64>>>", launch="second")
    (hint,) = list_all(time(short, BEFORE))
    assert hint.label == "measured 41.2 µs ± 0.1 · longest of 2"
    assert (hint.tooltip or "").index("<<<4, 64>>> measured 9.00 µs") < (hint.tooltip or "").index("<<<16, 64>>> ")


def test_a_time_of_another_text_says_so() -> None:
    (hint,) = list_all(time(BEFORE), f"// new\n{TEXT.replace('= 1', '= 2')}")
    assert (hint.position.line, hint.label) == (2, "measured 41.2 µs ± 0.1 · before your edits")


@pytest.mark.parametrize("error_ns", [1e-6, 0.0, None])
def test_what_does_not_fit_is_left_out(error_ns: float | None) -> None:
    old = replace(BEFORE, error_ns=error_ns)
    state = time(replace(NOW, error_ns=error_ns), known=time(old))
    (hint,) = list_all(state)
    assert (
        str(hint.label).startswith("measured 36.3 µs")
        and str(hint.label).endswith(" · 12 % faster")
        and len(hint.label) <= MOST_CHARS
    )


def test_a_hot_first_line_keeps_its_share() -> None:
    listing = "k.cu:2  FMUL R2, R2, R3  ; long_scoreboard=60"
    share, shown = list_all(time(BEFORE), listing=listing)
    assert (share.label, shown.label) == ("100 % samples, long_scoreboard", "· 41.2 µs")
    share, shown = list_all(time(NOW, known=time(BEFORE)), listing=listing)
    assert (share.label, shown.label) == ("100 % samples, long_scoreboard", "· 36.3 µs")
    share, shown, _ = list_all(time(NOW, known=time(BEFORE)), listing=f"{listing}\nk.cu:5  FMUL R2, R2, R3  ; wait=30")
    assert (share.label, shown.label) == ("67 % samples, long_scoreboard", "· 36.3 µs")


def test_what_has_no_room_beside_a_share_is_in_the_tooltip() -> None:
    listing = "k.cu:2  FMUL R2, R2, R3  ; long_scoreboard=60"
    (share,) = list_all(time(BEFORE), f"// new\n{TEXT.replace('= 1', '= 2')}", listing)
    assert share.label == "100 % samples, long_scoreboard"
    assert "; <<<16, 64>>> measured 41.2 µs" in (share.tooltip or "")


def test_times_are_switched_like_other_hints() -> None:
    assert list_all(time(BEFORE), is_on=False) == []
    assert len(list_all(time(BEFORE), metric=MetricKind.TIME)) == 1
    assert list_all(time(BEFORE), metric=MetricKind.EXECUTIONS) == []


def test_a_lens_at_the_end_of_the_line_is_not_repeated() -> None:
    assert list_all(time(BEFORE), abilities=Abilities(line_end_lenses=True)) == []


def test_what_is_kept_between_timing_and_sampling_runs_nothing(tmp_path: Path) -> None:
    """A file that somebody else put in the place of what was timed is refused, not executed."""

    class Trap:
        def __reduce__(self) -> object:
            return os.mkdir, (str(tmp_path / "sprung"),)

    kept = tmp_path / "timings"
    for content in (pickle.dumps(Trap()), pack_records(("no", "timings")), b"", b"\x80\x05garbage"):
        kept.write_bytes(content)
        result = WORK.do(SampleJob(kept=kept, target=tmp_path / "t.gpa-profile.json"), lambda _: None)
        assert isinstance(result, SampleResult)
        assert "timings: holds" in result.reason and "make it again" in result.reason
    assert not (tmp_path / "sprung").exists()
