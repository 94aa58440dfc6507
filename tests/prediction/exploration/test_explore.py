"""Spaces are evaluated once each, wherever it is done, and what was done is not done again."""

import os

import pytest

from gpa_lsp.execution.prediction.exploration.explore import Journal, LocalWorkers, Subject, evaluate_space
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration
from gpa_lsp.foundation.errors import ToolError
from tests.conftest import ROOT

SPACE = tuple(Configuration(block=(x, y, 1)) for x in range(1, 11) for y in range(1, 9))
SUBJECT = Subject(kernel="k", device="V100", mode="default", threads=(64, 64, 1), digest="00")


def evaluate(configuration: Configuration) -> RankedConfiguration:
    """Slower the more threads; where it ran stands in the limiter."""
    return RankedConfiguration(configuration=configuration, seconds=configuration.threads / 7, limiter=str(os.getpid()))


def die(configuration: Configuration) -> RankedConfiguration:
    os._exit(3)


def refuse(configuration: Configuration) -> RankedConfiguration:
    raise KeyboardInterrupt(f"{configuration} was done already")


@pytest.fixture(autouse=True)
def import_path(monkeypatch):
    """Processes find this module."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_processes_rank_as_one_process_does():
    here, _ = evaluate_space(SPACE, evaluate, LocalWorkers(1))
    there, _ = evaluate_space(SPACE, evaluate, LocalWorkers(2, here_s=0))
    assert [one.configuration for one in here] == [one.configuration for one in there]
    assert {one.limiter for one in here} == {str(os.getpid())}
    assert str(os.getpid()) not in {one.limiter for one in there}


def test_a_process_that_dies_is_told():
    with pytest.raises(ToolError, match="before it was done"):
        evaluate_space(SPACE, die, LocalWorkers(2, here_s=0))


def test_an_interrupted_exploration_goes_on_where_it_was(tmp_path):
    class Interrupted(LocalWorkers):
        def run(self, evaluate, configurations):
            for number, part in enumerate(super().run(evaluate, configurations)):
                if number == 30:
                    raise KeyboardInterrupt
                yield part

    with Journal(tmp_path / "j", SUBJECT) as journal, pytest.raises(KeyboardInterrupt):
        evaluate_space(SPACE, evaluate, Interrupted(1), journal=journal)
    told = []
    with Journal(tmp_path / "j", SUBJECT) as journal:
        ranked, resumed = evaluate_space(
            SPACE, evaluate, LocalWorkers(1), journal=journal, progress=lambda done, total: told.append((done, total))
        )
    assert resumed == 30
    assert told[0] == (30, len(SPACE))
    assert told[-1] == (len(SPACE), len(SPACE))
    assert sorted(one.configuration for one in ranked) == sorted(SPACE)
    with Journal(tmp_path / "j", SUBJECT) as journal:
        again, resumed = evaluate_space(SPACE, refuse, LocalWorkers(1), journal=journal)
    assert (again, resumed) == (ranked, len(SPACE))


def test_what_the_journal_has_beyond_the_space_is_left_out(tmp_path):
    with Journal(tmp_path / "j", SUBJECT) as journal:
        evaluate_space(SPACE, evaluate, LocalWorkers(1), journal=journal)
    with Journal(tmp_path / "j", SUBJECT) as journal:
        ranked, _ = evaluate_space(SPACE[:3], refuse, LocalWorkers(1), journal=journal)
    assert sorted(one.configuration for one in ranked) == sorted(SPACE[:3])


def test_what_is_quick_starts_no_process(monkeypatch):
    monkeypatch.setattr("gpa_lsp.execution.prediction.exploration.explore.run_parts", None)
    found, _ = evaluate_space(SPACE, evaluate, LocalWorkers(2, here_s=60.0))
    assert found == evaluate_space(SPACE, evaluate, LocalWorkers(1))[0]
