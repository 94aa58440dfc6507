"""The status line: what goes on counts, measuring before reading, and nothing is said twice."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.editor.metrics import find_metric
from gpa_lsp.editor.protocol.status import ASKING, FAILED, IDLE, MEASURING, METHOD, READING, Status
from gpa_lsp.editor.snapshot import Snapshot
from tests.editor.views import make_profile, make_snapshot
from tests.report_builder import build_kernel


class Display:
    """A progress bar that counts."""

    def __init__(self) -> None:
        self.reports: list[str] = []
        self.ends = 0

    def report(self, text: str, ratio: float | None) -> None:
        self.reports.append(text)

    def end(self, text: str) -> None:
        self.ends += 1


class Line:
    """A client's status line."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.status = Status(self._take)

    def _take(self, method: str, params: Any) -> None:
        assert method == METHOD
        self.said.append(params)

    @property
    def state(self) -> tuple[str, str]:
        return self.said[-1]["state"], self.said[-1]["text"]


def make_profiles(count: int, kernels: int = 1) -> Snapshot:
    profiles = [
        make_profile(
            *(build_kernel("saxpy.cu:4  X  ; wait=1", name=f"k{n}_{one}") for one in range(kernels)), path=f"{n}"
        )
        for n in range(count)
    ]
    return make_snapshot(*profiles)


def test_profiles_whose_kernels_are_not_shown_are_counted_too() -> None:
    old = build_kernel("saxpy.cu:4  X  ; wait=1", name="k", measured_unix_s=1_600_000_000)
    kernel = build_kernel("saxpy.cu:4  X  ; wait=1", name="k", measured_unix_s=1_700_000_000)
    line = Line()
    line.status.take(
        make_snapshot(
            make_profile(old, path="old"),
            make_profile(kernel, path="new"),
            make_profile(kernel, path="one more of the new"),
            make_profile(path="empty"),
        ).with_unreadable([Path("cut.ncu-rep")])
    )
    rest = "1 older, 1 copy, 1 without kernels, 1 unreadable"
    assert line.state == (IDLE, f"1 kernel from 1 of 5 profiles ({rest})")


def test_profiles_of_which_none_can_be_read_are_said() -> None:
    line = Line()
    line.status.take(Snapshot().with_unreadable([Path("a"), Path("b")]))
    assert line.state == (IDLE, "no profile (2 unreadable)")


def test_what_is_known_is_said_in_words() -> None:
    line = Line()
    for snapshot, words in (
        (Snapshot(), "no profile"),
        (make_profiles(1), "1 kernel from 1 profile"),
        (make_profiles(1, 2), "2 kernels from 1 profile"),
        (make_profiles(3), "3 kernels from 3 profiles"),
    ):
        line.status.take(snapshot)
        assert line.state == (IDLE, words)
    assert line.said[-1] == {
        "state": "idle",
        "text": "3 kernels from 3 profiles",
        "profiles": 3,
        "kernels": 3,
        "metric": {"name": "usual", "title": "samples and causes"},
        "question": "",
        "detail": "",
    }


def test_what_is_shown_on_lines_is_said() -> None:
    line = Line()
    line.status.show_metric(find_metric("sectors"))
    assert line.said[-1]["metric"] == {"name": "sectors", "title": "sectors"}


def test_a_question_stands_there_until_it_is_answered() -> None:
    line = Line()
    reading = line.status.watch(READING, Display())
    line.status.ask("may it run?")
    assert line.state == (ASKING, "a save waits for your answer: measure it?")
    assert line.said[-1]["question"] == "may it run?"
    reading.end("done")
    assert line.state[0] == ASKING
    line.status.ask("")
    assert (line.state[0], line.said[-1]["question"]) == (IDLE, "")


def test_measuring_comes_before_reading_and_failures_last() -> None:
    line = Line()
    reading = line.status.watch(READING, Display())
    measuring = line.status.watch(MEASURING, Display())
    reading.report("a.ncu-rep", 0.5)
    assert line.state == (MEASURING, "")
    measuring.report("running", None)
    assert line.state == (MEASURING, "running")
    line.status.fail("no permission")
    measuring.end("done")
    assert line.state == (READING, "a.ncu-rep")
    reading.end("done")
    assert line.state == (FAILED, "no permission")
    line.status.fail("")
    assert line.state == (IDLE, "no profile")


def test_a_bar_that_ends_twice_ends_once() -> None:
    line = Line()
    first, second = line.status.watch(READING, Display()), line.status.watch(READING, Display())
    first.end("")
    first.end("")
    first.report("late", 1.0)
    assert line.state == (READING, "")
    second.end("")
    assert line.state[0] == IDLE


def test_a_client_that_does_not_care_is_told_nothing() -> None:
    display = Display()
    watched = Status(None).watch(READING, display)
    watched.report("x", None)
    watched.end("x")
    assert (display.reports, display.ends) == (["x"], 1)


STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "measure", "report", "end", "fail", "take"]), st.integers(0, 5)), max_size=30
)


@given(STEPS)
def test_the_line_says_what_goes_on(steps: list[tuple[str, int]]) -> None:
    line = Line()
    bars: list[tuple[str, Any]] = []
    running: list[str] = []
    failure, known = "", 0
    line.status.say()
    for step, number in steps:
        if step in ("read", "measure"):
            state = READING if step == "read" else MEASURING
            bars.append((state, line.status.watch(state, Display())))
            running.append(state)
        elif step in ("report", "end") and bars:
            state, bar = bars[number % len(bars)]
            if step == "report":
                bar.report(f"step {number}", None)
            else:
                bar.end("")
                del bars[number % len(bars)]
                running.remove(state)
        elif step == "fail":
            failure = f"failure {number}" if number else ""
            line.status.fail(failure)
        elif step == "take":
            known = number
            line.status.take(make_profiles(number))
        expected = MEASURING if MEASURING in running else READING if running else FAILED if failure else IDLE
        assert line.state[0] == expected
        assert (line.said[-1]["profiles"], line.said[-1]["kernels"]) == (known, known)
        assert expected != FAILED or line.state[1] == failure
    assert all(one != other for one, other in zip(line.said, line.said[1:], strict=False))
