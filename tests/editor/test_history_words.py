"""Texts on a kernel's past in lens, hover and page."""

from datetime import UTC

import pytest
from msgspec.structs import replace

from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.editor.history import build_course, build_past, describe_change_briefly, describe_line_change
from gpa_lsp.report.history.model import KernelHistory, Recording, Run, RunChange
from gpa_lsp.report.history.past import compare_runs
from tests.history.recordings import NOON_NS, SECOND_NS, make_key, make_recording
from tests.render.time_courses import make_commit, make_course

NOW_NS = NOON_NS + 4 * 3600 * SECOND_NS
MANY = {"long_scoreboard": 7000, "wait": 3000}


def make_run(recording: Recording, number: int) -> Run:
    return Run(run_id=number, measurement=recording.measurement, recorded_ns=0, is_baseline=False)


def change(before: Recording, after: Recording, number: int = 1) -> RunChange:
    return compare_runs(make_run(before, number), make_run(after, 9), before.content, after.content)


def make_history(
    previous: RunChange | None = None, baseline: RunChange | None = None, **changes: object
) -> KernelHistory:
    run = make_run(make_recording(100), 9)
    history = KernelHistory(run=run, previous=previous, baseline=baseline, run_count=3)
    return replace(history, **changes)  # type: ignore[arg-type]


def brief(history: KernelHistory | None) -> str:
    return describe_change_briefly(history, NOW_NS, UTC)


def test_since_the_last_run_and_since_the_baseline() -> None:
    after = make_recording(7200, times_ns=(2e6,))
    history = make_history(
        change(make_recording(7320, times_ns=(2.44e6,)), after, 2),
        change(make_recording(-90_000, times_ns=(2.9e6,)), after),
    )
    assert brief(history) == "−18 % since 14:02 · −31 % since baseline"


def test_a_baseline_that_is_the_last_run_is_said_once() -> None:
    found = change(make_recording(0, times_ns=(2e6,)), make_recording(60, times_ns=(3e6,)))
    assert brief(make_history(found, found)) == "+50 % since baseline 12:00"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"times_ns": (2e6,)}, {"times_ns": (2.02e6,)}, "no change since 12:00 (within 3.0 % noise)"),
        ({"code": "x"}, {"code": "x"}, "same code as at 12:00"),
        ({"code": "x", "times_ns": (1e6,)}, {"code": "x", "times_ns": (2e6,)}, "same code as at 12:00, yet +100 %"),
        ({"times_ns": ()}, {}, "no time to compare since 12:00"),
        ({"times_ns": (4e6,)}, {"grid": (64, 1, 1)}, "−50 % since 12:00"),
        (
            {"times_ns": (4e6,)},
            {"grid": (64, 1, 1), "executed": 600.0},
            "−50 % since 12:00 (work may differ: grid 128 → 64, 0.60× the instructions)",
        ),
        (
            {"code": "c" * 32 + "1" * 32},
            {"code": "c" * 32 + "2" * 32, "grid": (64, 1, 1), "executed": 500.0},
            "not compared since 12:00 (other size: grid 128 → 64, 0.50× the instructions)",
        ),
        (
            {"code": "x", "times_ns": (1630.0,)},
            {"code": "x", "executed": 282e3},
            "not compared since 12:00 (other data: 282× the instructions)",
        ),
        ({"times_ns": (100.0, 100.0, 100.0)}, {"times_ns": (96.0, 96.0, 96.0)}, "−4.0 % since 12:00"),
    ],
)
def test_honest_words(before: dict, after: dict, expected: str) -> None:
    assert brief(make_history(change(make_recording(0, **before), make_recording(60, **after)))) == expected


def test_other_template_arguments_are_named() -> None:
    before = make_recording(0, key=make_key(name="void scale<32>(float*)"), times_ns=(4e6,))
    after = make_recording(60, key=make_key(name="void scale<64>(float*)"), grid=(64, 1, 1), executed=None)
    assert (
        brief(make_history(change(before, after)))
        == "−50 % since 12:00 (was scale<32>, work may differ: grid 128 → 64)"
    )


def test_the_same_code_as_the_baseline() -> None:
    found = change(make_recording(0, code="x"), make_recording(60, code="x"))
    assert brief(make_history(None, found)) == "same code as the baseline"


def test_a_run_of_another_day() -> None:
    found = change(make_recording(-90_000, code="x"), make_recording(60, code="x"))
    assert brief(make_history(found)) == "same code as on 20 Nov"


def test_another_gpu_and_the_baseline_itself() -> None:
    assert brief(make_history(other_device="NVIDIA A100")) == "first run on this GPU, before on NVIDIA A100"
    run = replace(make_run(make_recording(), 9), is_baseline=True)
    assert brief(make_history(run=run)) == "this is the baseline"


def test_nothing_to_say() -> None:
    assert brief(None) == ""
    assert brief(make_history()) == ""
    assert build_past(None) == []
    assert build_past(make_history()) == []
    assert describe_line_change(None, ("saxpy.cu", 2)) == ""
    assert describe_line_change(make_history(), ("saxpy.cu", 2)) == ""


def test_a_line_with_its_time_then_and_now() -> None:
    before = make_recording(0, times_ns=(260e3,), samples=MANY, lines={2: 7000, 3: 3000})
    after = make_recording(60, times_ns=(120e3,), samples=MANY, lines={2: 8000, 3: 2000})
    history = make_history(change(before, after))
    assert describe_line_change(history, ("saxpy.cu", 2)) == "this line: 182 µs → 96.0 µs since the last run"
    assert describe_line_change(history, ("saxpy.cu", 77)) == ""


def test_a_line_few_samples_speak_of() -> None:
    history = make_history(change(make_recording(0, lines={2: 6}), make_recording(60, lines={2: 5})))
    found = describe_line_change(history, ("saxpy.cu", 2))
    assert found == "this line: 100 µs, 120 µs in the last run (too few samples to tell a change)"


def test_a_line_that_is_new_or_was_silent() -> None:
    before = make_recording(0, samples=MANY, lines={1: 9000}, text="a\nb")
    after = make_recording(60, samples=MANY, lines={1: 5000, 2: 3000, 3: 2000}, text="a\nb\nc\nd")
    history = make_history(change(before, after))
    assert describe_line_change(history, ("saxpy.cu", 2)) == "this line: nothing → 600 µs since the last run"
    assert describe_line_change(history, ("saxpy.cu", 3)) == "this line is new since the last run: 400 µs"


def test_a_line_of_a_kernel_without_times_is_in_shares() -> None:
    before = make_recording(0, times_ns=(), samples=MANY, lines={2: 8000})
    after = make_recording(60, samples=MANY, lines={2: 2000})
    found = describe_line_change(make_history(change(before, after)), ("saxpy.cu", 2))
    assert found == "this line: 80 % → 20 % of the kernel since the last run"


def test_of_the_same_code_no_line_is_said_to_have_changed() -> None:
    before = make_recording(0, code="x", samples=MANY, lines={2: 8000})
    after = make_recording(60, code="x", samples=MANY, lines={2: 2000})
    assert describe_line_change(make_history(change(before, after)), ("saxpy.cu", 2)) == ""


def test_the_page_names_runs_ranges_and_grounds() -> None:
    after = make_recording(7200, times_ns=(2e6, 2e6, 2e6), grid=(64, 1, 1), executed=None)
    history = make_history(
        change(make_recording(7320, times_ns=(2.5e6, 2.5e6, 2.5e6)), after, 2),
        change(make_recording(-90_000, times_ns=(2.01e6,), cycles=(9.0,)), after),
    )
    assert list(write_markdown(build_past(history, NOW_NS, UTC))) == [
        "- since the last run (14:02): 2.50 ms → 2.00 ms: −20 % (work may differ: grid 128 → 64); 3 and 3 launches",
        "- since the baseline (20 Nov): 2.01 ms → 2.00 ms: no change beyond 3.0 % noise"
        " (work may differ: grid 128 → 64); too few launches to see the noise; 3 % and the launch overhead assumed",
        "- 3 runs of this kernel on this GPU",
    ]


def test_times_over_runs_as_blocks() -> None:
    course = make_course([2e6, 1e6, 3e6], {0: make_commit(1), 2: make_commit(2, "[a](command:b)")})
    history = make_history(course=course)
    assert list(write_markdown(build_course(history))) == [
        "**history** ▅▁╎▲█ 2.00 ms → 3.00 ms over 3 runs; ▲ slower in run 3 (+200 %, 00000002 “\\[a\\](command:b)”); ╎ 2 commits"
    ]


def test_a_kernel_that_was_measured_once_has_no_course() -> None:
    for history in (None, make_history(), make_history(course=make_course([1e6]))):
        assert build_course(history) == []


def test_the_page_of_a_kernel_begins_its_past_with_the_course() -> None:
    found = change(make_recording(0, times_ns=(2e6,)), make_recording(60, times_ns=(3e6,)))
    said = "\n".join(write_markdown(build_past(make_history(found, course=make_course([2e6, 3e6])), NOW_NS, UTC)))
    assert said.startswith("**history** ▁▲█ 2.00 ms → 3.00 ms over 2 runs")
