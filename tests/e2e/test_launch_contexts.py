"""One kernel launched in several ways: each launch context is judged by its own samples and shape, and all of them are shown together."""

import io
import itertools
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.document.advice_screen import MOST_LINES
from gpa_lsp.document.charts.roofline_chart import build_roofline_chart
from gpa_lsp.document.context_words import name_contexts
from gpa_lsp.editor.kernel_page import describe_kernel, describe_kernel_briefly, describe_verdict
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.kernel.scatter import MOST_CONTEXTS
from gpa_lsp.report.model import Report
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved.store import read_report, write_report
from tests.e2e.example_launches import judge, list_gains, make_launch, read_screen, write_launches
from tests.editor.views import make_profile
from tests.render.html_report.test_page import unpack

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a profile with some launches, and gives its path."""
    return partial(write_launches, tmp_path)


LARGE, SMALL = make_launch(4096), make_launch(8, barrier=1, long_scoreboard=3)


def test_each_context_is_judged_as_if_it_were_alone(write: Write) -> None:
    both = judge(write(LARGE, SMALL, name="both"))
    assert [one.configuration.grid for one in both.contexts] == [(4096, 1, 1), (8, 1, 1)]
    for context, launch in zip(both.contexts, (LARGE, SMALL), strict=True):
        alone = judge(write(launch, name="alone"))
        assert context.limiter == alone.limiter
        assert list_gains(context.advice) == list_gains(alone.advice)
        assert context.total_samples == alone.total_samples
    assert sum(one.total_samples for one in both.contexts) == both.total_samples


def test_a_remedy_of_the_kernel_weighs_its_contexts_by_time(write: Write) -> None:
    kernel = judge(write(make_launch(4096, time_ns=300e3), make_launch(8, time_ns=100e3)))
    assert kernel.advice is not None
    assert [one.ratio for one in kernel.contexts] == [0.75, 0.25]
    per_context = [
        {one.optimizer: one.speedup.estimate for one in (context.advice.advice if context.advice else ())}
        for context in kernel.contexts
    ]
    for one in kernel.advice.advice:
        left = sum(
            context.ratio / gains.get(one.optimizer, 1.0)
            for context, gains in zip(kernel.contexts, per_context, strict=True)
        )
        assert one.speedup.estimate == pytest.approx(1 / left)
        assert one.speedup.low <= one.speedup.estimate <= one.speedup.high <= one.speedup.bound
    assert kernel.limiter == kernel.contexts[0].limiter
    partial = {one.optimizer: one.contexts for one in kernel.advice.advice if one.contexts}
    assert partial["block_increase"] == (1,)


def test_as_published_each_context_has_advice_of_its_own(write: Write) -> None:
    """GPA section III: launch contexts are analysed separately."""
    (kernel,) = analyse([write(LARGE, SMALL, name="both")], mode="paper").kernels
    assert kernel.advice is not None
    for position, launch in enumerate((LARGE, SMALL)):
        (alone,) = analyse([write(launch, name="alone")], mode="paper").kernels
        assert alone.advice is not None
        own = [one for one in kernel.advice.advice if one.contexts == (position,)]
        assert [one.speedup for one in own] == [one.speedup for one in alone.advice.advice]
        assert {one.title.partition(",")[2] for one in own} == {f" launch context {position + 1}"}
    groups = [one.group for one in kernel.advice.advice]  # no piece is an alternative to one of another context
    assert len(set(groups)) == len(groups)
    assert len(kernel.advice.advice) == sum(len(one.advice.advice) for one in kernel.contexts if one.advice)


def test_the_answer_is_the_same_for_any_order_of_launches(write: Write) -> None:
    launches = (LARGE, SMALL, make_launch(64), make_launch(64, wait=2))
    found = []
    for number, order in enumerate(itertools.permutations(launches)):
        if number % 5:
            continue
        kernel = judge(write(*order, name="k"))
        screen = [line.replace("launch 0", "launch").replace("launch 3", "launch") for line in read_screen(kernel)]
        answers = [answer.summary for answer in kernel.analyses.answers] if kernel.analyses else []
        gains = [list_gains(one.advice) for one in kernel.contexts]
        found.append((screen, answers, list_gains(kernel.advice), gains, kernel.configuration))
    assert len(found) > 3
    assert all(one == found[0] for one in found)


def test_the_order_of_files_does_not_matter(write: Write) -> None:
    paths = [write(LARGE, name="a"), write(make_launch(4096, wait=2), name="b")]
    first, second = (
        [(one.profile_path, one.total_samples) for one in analyse(order).kernels] for order in (paths, paths[::-1])
    )
    assert first == second


def _draw_rooflines(path: Path) -> list[tuple[str, float, float]]:
    """First view of a roofline: launches, and positions of their points."""
    data = build_roofline_chart([judge(path)])
    shown = next(one["value"] for one in data["params"] if one["name"] == "shown_rows")
    names = {row["id"]: row["launch"].partition(" (launch")[0] for row in data["datasets"]["rows"]}
    return [(names[one["row"]], one["x"], one["y"]) for one in data["datasets"]["points"] if one["row"] in shown]


def test_a_roofline_draws_each_context_and_their_sum_in_any_order_of_launches(write: Write) -> None:
    large, small, other = make_launch(4096, time_ns=400e3), make_launch(8, time_ns=200e3), make_launch(8, time_ns=100e3)
    drawn = [
        _draw_rooflines(write(*order, name=f"k{number}"))
        for number, order in enumerate(itertools.permutations((large, small, other)))
    ]
    assert {name for name, *_ in drawn[0]} == {"sum of 2 launch contexts", "grid 4,096, block 256", "grid 8, block 256"}
    assert len({rate for name, _, rate in drawn[0] if "grid" in name}) > 1
    assert all(one == drawn[0] for one in drawn)
    (alone,) = {name for name, *_ in _draw_rooflines(write(small, other, name="alone"))}
    assert alone == "all launches together"


def test_the_text_of_a_roofline_says_that_it_is_a_sum_and_gives_each(write: Write) -> None:
    with redirect_stdout(io.StringIO()) as out:
        assert main(["roofline", str(write(LARGE, SMALL, SMALL))]) == 0
    text = " ".join(out.getvalue().split())
    assert "the sum of 2 launch contexts" in text
    assert "grid 4,096, block 256" in text
    assert "grid 8, block 256" in text


def test_launches_of_one_configuration_stay_one_subject(write: Write) -> None:
    one, many = judge(write(LARGE, name="one")), judge(write(LARGE, LARGE, LARGE, name="many"))
    assert many.contexts == ()
    assert many.other_contexts == 0
    assert not any(line.startswith("  in ") for line in read_screen(many))
    assert [name for name, *_ in list_gains(one.advice)] == [name for name, *_ in list_gains(many.advice)]


def test_host_paths_are_contexts_and_failed_launches_are_none(write: Write) -> None:
    failed = make_launch(0) | {"failure": "the profiler failed on this launch", "samples": []}
    here, there = make_launch(stack=["12"]), make_launch(stack=["40"])
    kernel = judge(write(here, there, here, failed))
    assert [one.launches for one in kernel.contexts] == [(0, 2), (1,)]
    (line,) = [line for line in read_screen(kernel) if line.startswith("  in ")]
    assert "from app.cu:12 (67 % of the time) and from app.cu:40 (33 % of the time): the same limit and advice" in line


def test_parts_are_of_one_whole_and_every_context_has_a_name(write: Write) -> None:
    timed, untimed, unknown = make_launch(stack=["12"]), make_launch(stack=["40"]), make_launch()
    del untimed["metrics"]["gpu__time_duration.sum"]
    kernel = judge(write(timed, untimed, unknown))
    text = " ".join(read_screen(kernel))
    assert "from app.cu:12 (33 % of the samples)" in text
    assert "of the time" not in text
    assert {"from app.cu:12", "from app.cu:40", "from an unknown place"} == set(name_contexts(kernel))


def test_a_limit_of_one_context_says_so(write: Write) -> None:
    kernel = judge(write(make_launch(4096), make_launch(8, wait=9)))
    assert len({(one.limiter.kind, one.limiter.unit) for one in kernel.contexts if one.limiter}) == 2
    assert "(in the heaviest launch context)" in next(line for line in read_screen(kernel) if "limit" in line)


def test_every_view_names_the_contexts(write: Write, tmp_path: Path) -> None:
    path = write(LARGE, SMALL)
    kernel = judge(path)
    shown = make_profile(kernel, texts={})
    visible = VisibleKernel(name="k", profile=shown, kernel=shown.kernels[0])
    page = tmp_path / "page.html"
    assert main(["report", str(path), "--html", "-o", str(page)]) == 0
    printed = {
        "hover": str(describe_verdict(visible)),
        "page": describe_kernel(visible),
        "html": str(unpack(page.read_text())),
    }
    for name, words in {
        "advise": ["advise"],
        "details": ["advise", "--details"],
        "markdown": ["advise", "--details", "--format", "markdown"],
        "report": ["report"],
    }.items():
        with redirect_stdout(io.StringIO()) as out:
            assert main([*words, str(path)]) == 0
        printed[name] = out.getvalue()
    for name, text in printed.items():
        assert "grid 4,096, block 256" in text, name
        assert "grid 8, block 256" in text, name
    assert "2 launch contexts" in describe_kernel_briefly(visible, 200)


def test_hundreds_of_contexts_stay_readable(write: Write) -> None:
    launches = [make_launch(64 + number, time_ns=186e3 + 100.0 * number) for number in range(300)]
    kernel = judge(write(*launches))
    assert len(kernel.contexts) == MOST_CONTEXTS
    assert kernel.other_contexts == 300 - MOST_CONTEXTS
    assert kernel.contexts[0].configuration.grid == (363, 1, 1)
    lines = read_screen(kernel, 100)
    assert len(lines) <= MOST_LINES
    assert any("292 other launch contexts with 9" in line.replace("\n", " ") for line in read_screen(kernel))
    assert kernel.advice is not None
    assert kernel.advice.advice, "what is unseen does not silence what was seen"
    for one in kernel.advice.advice:
        assert one.speedup.low <= 1.05, "what was not judged may gain nothing"


def test_a_saved_report_keeps_its_contexts_and_older_ones_have_none(write: Write) -> None:
    kernel = judge(write(LARGE, SMALL))
    path = Path(kernel.profile_path or "").with_name("saved.json")
    with path.open("w") as stream:
        write_report(Report(problems=(), kernels=(kernel,)), stream)
    assert read_report(path).kernels[0].contexts == kernel.contexts
    saved = json.loads(path.read_text())
    for one in saved["kernels"]:
        del one["contexts"], one["other_contexts"]
        for advice in one["advice"]:
            del advice["contexts"]
    path.write_text(json.dumps(saved))
    (old,) = read_report(path).kernels
    assert old.contexts == ()
    assert old.advice is not None
