"""Changes between two runs."""

import pytest
from msgspec.structs import replace

from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.history.model import Recording, RememberedFile, RememberedLine, Run, RunChange
from gpa_lsp.report.history.past import compare_runs
from tests.history.recordings import make_recording

BEFORE = "void k() {\n  load();\n  multiply();\n}"
AFTER = "// a note\nvoid k() {\n  load();\n  multiply_faster();\n}"


def compare(before: Recording, after: Recording) -> RunChange:
    runs = [
        Run(run_id=number, measurement=recording.measurement, recorded_ns=0, is_baseline=False)
        for number, recording in enumerate((before, after), 1)
    ]
    return compare_runs(runs[0], runs[1], before.content, after.content)


def test_lines_are_followed_through_an_edit_and_times_are_shares_of_the_kernels() -> None:
    before = make_recording(0, times_ns=(2e6,), lines={2: 60, 3: 40}, text=BEFORE)
    after = make_recording(1, times_ns=(1e6,), lines={3: 80, 4: 20}, text=AFTER)
    found = compare(before, after)
    assert found.verdict is Verdict.FASTER
    load, multiply = found.lines[("saxpy.cu", 3)], found.lines[("saxpy.cu", 4)]
    assert (load.before_line, load.after_line) == (2, 3)
    assert (load.before_ns, load.after_ns) == (pytest.approx(1.2e6), pytest.approx(0.8e6))
    assert (load.before_ratio, load.after_ratio) == (0.6, 0.8)
    assert (multiply.before_line, multiply.after_line) == (3, 4)
    assert (multiply.before_ns, multiply.after_ns) == (pytest.approx(0.8e6), pytest.approx(0.2e6))
    assert found.gone == ()
    assert set(found.lines) == {("saxpy.cu", 3), ("saxpy.cu", 4)}


def test_lines_that_are_gone_new_or_silent_on_one_side() -> None:
    before = make_recording(0, lines={1: 10, 3: 90}, text="a\nb\nc\nd")
    after = make_recording(1, lines={2: 30, 3: 70}, text="a\nb\nx\ny\nd")
    found = compare(before, after)
    silent, come = found.lines[("saxpy.cu", 2)], found.lines[("saxpy.cu", 3)]
    assert (silent.before_line, silent.before_ns) == (2, 0.0)
    assert (come.before_line, come.before_ns) == (None, 0.0)
    cooled = found.lines[("saxpy.cu", 1)]
    assert (cooled.before_line, cooled.after_line, cooled.after_ns) == (1, 1, 0.0)
    (gone,) = found.gone
    assert (gone.before_line, gone.after_line, gone.after_ns) == (3, None, 0.0)


def test_lines_left_out_of_a_long_list_are_not_taken_for_silent() -> None:
    before = make_recording(0, lines={1: 60}, text="a\nb\nc", is_whole=False)
    after = make_recording(1, lines={1: 50, 2: 20}, text="a\nb\nc", is_whole=False)
    assert set(compare(before, after).lines) == {("saxpy.cu", 1)}
    # Line 2 may have been among those the list before left out; line 3 of the list after may be too.
    whole = replace(before, content=replace(before.content, is_whole=True))
    assert set(compare(whole, after).lines) == {("saxpy.cu", 1), ("saxpy.cu", 2)}


def test_without_the_text_of_either_time_no_line_is_claimed() -> None:
    for texts in ((None, AFTER), (BEFORE, None), (None, None)):
        found = compare(make_recording(0, text=texts[0]), make_recording(1, text=texts[1]))
        assert dict(found.lines) == {}
        assert found.gone == ()


def test_of_the_same_code_lines_are_the_same_with_or_without_text() -> None:
    before, after = make_recording(0, text=None, code="x"), make_recording(1, text=None, code="x")
    found = compare(before, after)
    assert found.verdict is Verdict.SAME_CODE
    assert found.lines[("saxpy.cu", 2)].before_line == 2


def test_a_file_built_elsewhere_is_the_same_file() -> None:
    before = make_recording(0, compiled_path="/build/1/saxpy.cu", text=BEFORE)
    after = make_recording(1, compiled_path="/build/2/saxpy.cu", text=BEFORE)
    assert compare(before, after).lines[("/build/2/saxpy.cu", 2)].before_line == 2


def test_a_file_only_one_side_has_samples_in() -> None:
    after = make_recording(1)
    extra = RememberedFile(compiled_path="m.h", local_path=None, text="x", read_ns=0)
    line = RememberedLine(
        file="m.h", line=1, samples=10, latency_samples=0, called_samples=5.0, caused_samples=None, reason="wait"
    )
    content = after.content
    both = replace(after, content=replace(content, files=(*content.files, extra), lines=(*content.lines, line)))
    come = compare(make_recording(0), both).lines[("m.h", 1)]
    assert (come.before_line, come.before_ratio, come.after_ratio) == (None, 0.0, 0.15)
    (gone,) = compare(both, make_recording(2)).gone
    assert (gone.name, gone.before_line, gone.after_line) == ("m.h", 1, None)


def test_a_change_is_clear_when_counting_leaves_no_doubt() -> None:
    many = {"long_scoreboard": 7000, "wait": 3000}
    before = make_recording(0, samples=many, lines={2: 6000, 3: 4000})
    after = make_recording(1, samples=many, lines={2: 7000, 3: 3000})
    assert compare(before, after).lines[("saxpy.cu", 2)].is_clear
    few = compare(make_recording(0, lines={2: 60, 3: 40}), make_recording(1, lines={2: 64, 3: 36}))
    assert few.lines[("saxpy.cu", 2)].is_clear is False


def test_reasons_in_time_largest_change_first() -> None:
    before = make_recording(0, times_ns=(1e6,), samples={"wait": 50, "long_scoreboard": 50})
    after = make_recording(1, times_ns=(5e5,), samples={"wait": 90, "barrier": 10})
    found = compare(before, after).reasons
    assert [change.name for change in found] == ["long_scoreboard", "wait", "barrier"]
    assert [change.after_ns for change in found] == [pytest.approx(0), pytest.approx(4.5e5), pytest.approx(5e4)]


def test_unknown_times_are_not_invented() -> None:
    found = compare(make_recording(0, times_ns=()), make_recording(1))
    assert (found.verdict, found.time) == (Verdict.UNKNOWN, None)
    change = found.lines[("saxpy.cu", 2)]
    assert (change.before_ns, change.after_ns, change.before_ratio) == (None, pytest.approx(1.2e6), 0.6)


def test_cycles_decide_where_both_have_them() -> None:
    found = compare(
        make_recording(0, times_ns=(2e6,), cycles=(1e6,)), make_recording(1, times_ns=(1e6,), cycles=(1e6,))
    )
    assert found.verdict is Verdict.NO_CHANGE


def test_other_work_is_not_compared() -> None:
    assert compare(make_recording(0), make_recording(1)).note == ""
    small = make_recording(0, code="c" * 32 + "1" * 32, times_ns=(1630.0,))
    large = make_recording(1, code="c" * 32 + "2" * 32, grid=(4096, 1, 1), executed=32_000.0, times_ns=(460e3,))
    found = compare(small, large)
    assert (found.verdict, found.time, found.lines, found.reasons) == (Verdict.OTHER_WORK, None, {}, ())
    assert found.note == "other size: grid 128 → 4,096, 32.0× the instructions"


def test_executed_instructions() -> None:
    before, after = make_recording(0), make_recording(1)
    doubled = replace(after, measurement=replace(after.measurement, executed_instructions=2000.0))
    unknown = replace(after, measurement=replace(after.measurement, executed_instructions=None))
    assert compare(before, doubled).instructions_ratio == 2.0
    assert compare(before, unknown).instructions_ratio is None


def test_without_samples_on_one_side_no_stall_came_or_went() -> None:
    sampled, other = make_recording(0, times_ns=(2e6,)), make_recording(1, times_ns=(1e6,))
    measurement = replace(other.measurement, total_samples=0, by_reason={})
    bare = replace(other, measurement=measurement, content=replace(other.content, lines=()))
    found = compare(sampled, bare)
    assert (found.verdict, found.reasons, dict(found.lines), found.gone) == (Verdict.FASTER, (), {}, ())
    assert found.no_stalls == "stalls unknown: the report after has no samples"
    assert compare(bare, sampled).no_stalls == "stalls unknown: the report before has no samples"
    assert compare(sampled, sampled).no_stalls == ""
