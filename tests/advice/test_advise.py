"""Asking all optimizers: ranking, what stops one from answering, and what happens when one fails."""

from collections.abc import Iterator
from typing import Any

import pytest

from gpa_lsp.diagnosis.advice import advise as module
from gpa_lsp.diagnosis.advice.advise import advise_kernel, list_optimizers
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion, HidingMatch, HidingRegion
from gpa_lsp.diagnosis.advice.model import LEAST_SPEEDUP, Category, Hotspot, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.foundation.prose import say
from gpa_lsp.kernel.place import COUNTERS
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from tests.rows.written import write_kernel

SOURCE = """
    B-:R-:W0:-:S02  LDG.E R2, [R4.64]        # k.cu:3 | selected=10
    B0:R-:W-:-:S04  FFMA R2, R2, R3, R6      # k.cu:4 | long_scoreboard=80/70 selected=5
    B-:R-:W-:-:S05  EXIT                     # k.cu:5 | wait=5
"""
KERNEL = write_kernel(SOURCE)


SCOPE = Scope(kind=ScopeKind.LINE, function="kernel", row=0, file="k.cu", line=3)


def match(samples: float) -> EliminationMatch:
    """A given number of samples of the kernel."""
    spot = Hotspot(
        def_row=0, use_row=1, reason="long_scoreboard", category=None, samples=samples, latency_samples=samples / 2
    )
    region = EliminationRegion(scope=SCOPE, samples=samples, latency_samples=samples / 2, hotspots=(spot,))
    return EliminationMatch(regions=(region,), hint="Do it.")


def hide(subject: Subject) -> HidingMatch:
    """Most of the samples, of which few can be hidden."""
    spot = Hotspot(def_row=0, use_row=1, reason="long_scoreboard", category=None, samples=80, latency_samples=70)
    region = HidingRegion(
        scope=SCOPE, samples=80, latency_samples=20, active_samples=20, hotspots=(spot,), hint="Do it."
    )
    return HidingMatch(regions=(region,), active_samples=20, hint="Do it.")


def fail(subject: Subject) -> EliminationMatch:
    raise ZeroDivisionError("no")


def write(name: str, find: Any, **needs: Any) -> Optimizer:
    return Optimizer(name=name, title=name.capitalize(), category=Category.CODE, group="test", find=find, **needs)


def eliminate(samples: float, name: str = "eliminate") -> Optimizer:
    return write(name, lambda subject: match(samples))


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Optimizer]]:
    members: dict[str, Optimizer] = {}
    monkeypatch.setattr(module, "list_optimizers", lambda: members)
    yield members


def test_the_largest_estimate_comes_first(chosen: dict[str, Optimizer]) -> None:
    chosen.update(a=eliminate(20, "a"), b=eliminate(50, "b"))
    advice, problems = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))
    assert [one.optimizer for one in advice.advice] == ["b", "a"]
    assert not problems


def test_below_a_roof_the_larger_estimate_comes_first(chosen: dict[str, Optimizer]) -> None:
    roof = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 80.0}
    kernel = write_kernel(SOURCE, metrics=roof)
    chosen.update(hide=write("hide", hide, needs_split=True), eliminate=eliminate(50))
    found, _ = advise_kernel(Subject(kernel, blame_kernel(kernel)))
    assert [advice.optimizer for advice in found.advice] == ["eliminate", "hide"]
    assert found.advice[0].matched_samples < found.advice[1].matched_samples


def test_what_gains_next_to_nothing_is_silent(chosen: dict[str, Optimizer]) -> None:
    chosen.update(a=eliminate(0.5))
    advice, _ = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))
    assert advice.advice == ()
    assert advice.silences[0].stage is SilenceStage.TOO_SMALL
    assert "would save 0.5 % of the run time" in advice.silences[0].message


def test_one_that_yields_is_silent_where_the_other_speaks(chosen: dict[str, Optimizer]) -> None:
    general = write("general", lambda subject: match(60), yields_to="exact")
    chosen.update(general=general, exact=eliminate(50, "exact"))
    advice, _ = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))
    assert [one.optimizer for one in advice.advice] == ["exact"]
    assert [(one.optimizer, one.message) for one in advice.silences] == [("general", "another one says it: exact")]
    chosen.update(exact=write("exact", lambda subject: say("nothing")))
    advice, _ = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))
    assert [one.optimizer for one in advice.advice] == ["general"]


def test_a_failing_optimizer_is_a_problem_and_the_others_go_on(chosen: dict[str, Optimizer]) -> None:
    chosen.update(a=write("bad", fail), b=eliminate(50, "good"))
    advice, (problem,) = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))
    assert [one.optimizer for one in advice.advice] == ["good"]
    assert "ZeroDivisionError" in problem.message
    assert problem.kernel == "kernel"
    assert advice.silences[0].stage is SilenceStage.FAILED


def test_missing_counters_and_metrics_are_named_with_the_remedy(chosen: dict[str, Optimizer]) -> None:
    needs = {"needs_counters": ("global_sectors",), "needs_metrics": ("dram__bytes.sum",)}
    chosen.update(a=write("needy", lambda subject: match(20), **needs))
    (silence,) = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))[0].silences
    assert silence.stage is SilenceStage.NO_METRICS
    assert "global sectors" in silence.message
    assert "dram__bytes.sum" in silence.message
    assert "--set full" in silence.message


def test_without_samples_everyone_who_needs_them_is_silent_for_that_reason() -> None:
    kernel = write_kernel("NOP\nEXIT")
    advice, problems = advise_kernel(Subject(kernel, blame_kernel(kernel)))
    assert advice.advice == ()
    silent = {silence.optimizer for silence in advice.silences if silence.stage is SilenceStage.NO_SAMPLES}
    assert silent == {name for name, optimizer in list_optimizers().items() if optimizer.needs_samples}
    assert silent
    assert len(advice.silences) == len(list_optimizers())
    assert not problems


def test_every_optimizer_says_what_it_is() -> None:
    found = list_optimizers()
    paper = {
        "register_reuse", "strength_reduction", "function_split", "fast_math", "warp_balance", "memory_transaction_reduction",
        "loop_unrolling", "code_reordering", "function_inlining", "block_increase", "thread_increase",
    }  # fmt: skip
    assert paper <= set(found)
    for name, optimizer in found.items():
        assert optimizer.name == name
        assert optimizer.title
        assert optimizer.group
        assert set(optimizer.needs_counters) <= set(COUNTERS)


def test_everyone_answers_on_a_plain_kernel() -> None:
    advice, problems = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))
    assert not problems
    assert len(advice.advice) + len(advice.silences) == len(list_optimizers())
    for one in advice.advice:
        assert one.speedup.low <= one.speedup.estimate <= one.speedup.high <= one.speedup.bound
        assert one.speedup.estimate >= LEAST_SPEEDUP
        assert one.hint
        assert one.reasons
    assert all(silence.message for silence in advice.silences)
