"""A cell is measured only after its author agreed."""

from pathlib import Path

import pytest

from gpa_lsp.notebook.cells import read_cell
from gpa_lsp.notebook.measure import ALLOWED_COMMAND, NotAllowedError, require_consent
from gpa_lsp.profile.collect.allowance import Allowance

CELLS = [read_cell(1, "x = 1"), read_cell(3, "x")]


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))


class Person:
    """Answers, and remembers what was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def ask(self, question: str) -> str:
        self.asked.append(question)
        return self.answer


def test_the_question_names_the_cells(tmp_path: Path) -> None:
    person = Person(" Yes ")
    require_consent(tmp_path, CELLS, person.ask)
    assert "In [1], In [3]" in person.asked[0]


def test_yes_holds_once(tmp_path: Path) -> None:
    person = Person("y")
    require_consent(tmp_path, CELLS, person.ask)
    require_consent(tmp_path, CELLS, person.ask)
    assert len(person.asked) == 2


def test_always_holds_in_this_folder_until_it_is_taken_back(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    person = Person("a")
    for folder in (here, here, elsewhere):
        require_consent(folder, CELLS, person.ask)
    assert len(person.asked) == 2
    entries = Allowance().list_entries()
    assert {entry.profile for entry in entries} == {ALLOWED_COMMAND}
    Allowance().forget(entries)
    require_consent(here, CELLS, person.ask)
    assert len(person.asked) == 3


@pytest.mark.parametrize("answer", ["n", "", "perhaps"])
def test_everything_else_is_no(answer: str, tmp_path: Path) -> None:
    with pytest.raises(NotAllowedError, match="you said no"):
        require_consent(tmp_path, CELLS, Person(answer).ask)


def test_where_nobody_can_be_asked_the_way_to_agree_is_said(tmp_path: Path) -> None:
    def refuse(question: str) -> str:
        raise NotImplementedError(question)

    with pytest.raises(NotAllowedError, match="%%gpa --measure"):
        require_consent(tmp_path, CELLS, refuse)
