"""Budgets as projects write them, and what is said of those that mean nothing."""

from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.report.gate.model import (
    DEFAULT_BUDGETS,
    Limit,
    LimitKind,
    Metric,
    find_configuration,
    parse_limit,
    read_budgets,
)


def write(folder: Path, text: str, name: str = ".gpa-lsp.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("value", "metric", "kind", "amount"),
    [
        ("+3 %", Metric.TIME, LimitKind.CHANGE, 0.03),
        ("+2us", Metric.TIME, LimitKind.DIFFERENCE, 2e3),
        ("1.5 ms", Metric.TIME, LimitKind.VALUE, 1.5e6),
        ("1.05x", Metric.TIME, LimitKind.FACTOR, 1.05),
        ("0.9 ×", Metric.OCCUPANCY, LimitKind.FACTOR, 0.9),
        ("-5 %", Metric.OCCUPANCY, LimitKind.CHANGE, -0.05),
        ("50 %", Metric.OCCUPANCY, LimitKind.VALUE, 0.5),
        (64, Metric.REGISTERS, LimitKind.VALUE, 64.0),
        ("+8", Metric.REGISTERS, LimitKind.DIFFERENCE, 8.0),
        ("+16 B", Metric.SPILLS, LimitKind.DIFFERENCE, 16.0),
        (0, Metric.SPILLS, LimitKind.VALUE, 0.0),
        (4.5, Metric.SECTORS, LimitKind.VALUE, 4.5),
    ],
)
def test_limits(value: object, metric: Metric, kind: LimitKind, amount: float) -> None:
    assert parse_limit(value, metric) == Limit(kind=kind, amount=pytest.approx(amount))


@pytest.mark.parametrize(
    ("value", "metric"),
    [
        ("3 %", Metric.TIME),
        (3, Metric.TIME),
        ("-3 %", Metric.TIME),
        ("+5 %", Metric.OCCUPANCY),
        (0.5, Metric.OCCUPANCY),
        ("64 ns", Metric.REGISTERS),
        (True, Metric.REGISTERS),
        (float("nan"), Metric.REGISTERS),
        ("", Metric.TIME),
        ([], Metric.TIME),
    ],
)
def test_what_is_no_limit(value: object, metric: Metric) -> None:
    with pytest.raises(ValueError, match=r"write|wrong sign"):
        parse_limit(value, metric)


def test_both_files_say_the_same_in_their_own_tables(tmp_path: Path) -> None:
    rows = '[[{0}.budget]]\nmetric = "registers"\nlimit = 64\nkernel = "relax*"\n[{0}]\nmissing = "fail"\n'
    own = read_budgets(write(tmp_path, rows.format("gate")))
    project = read_budgets(
        write(tmp_path, '[project]\nname = "x"\n' + rows.format("tool.gpa-lsp.gate"), "pyproject.toml")
    )
    assert own.budgets == project.budgets
    assert own.fails_on_missing
    assert project.fails_on_missing
    assert find_configuration(tmp_path) == tmp_path / ".gpa-lsp.toml"


@pytest.mark.parametrize("text", ["", "[gate]\n"])
def test_a_file_that_says_nothing_leaves_the_default(tmp_path: Path, text: str) -> None:
    assert read_budgets(write(tmp_path, text)).budgets == DEFAULT_BUDGETS.budgets
    assert find_configuration(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[gate]\nmising = "fail"\n', "line 2: the gate has no key 'mising'; did you mean 'missing'?"),
        ("[gates]\n", "line 1: the configuration has no key 'gates'; did you mean 'gate'?"),
        ('[[gate.budget]]\nmetric = "time"\nlimit = "+3 %"\nkernels = "k"\n', "line 4: a budget has no key 'kernels'"),
        ('[[gate.budget]]\nmetric = "speed"\nlimit = "+3 %"\n', "line 2: metric is 'speed'; choose among"),
        ('[[gate.budget]]\nmetric = "time"\nlimit = "fast"\n', "line 3: limit is no limit"),
        ('[[gate.budget]]\nmetric = "time"\n', "line 1: limit is no limit"),
        ('[gate]\nmissing = "maybe"\n', "line 2: missing is 'maybe'; choose among fail, say"),
        ("[gate]\nbudget = 3\n", "line 2: 'budget' is not a list of budgets"),
        ("gate = 3\n", "line 1: 'gate' is not a table"),
        ("[gate\n", "line 1: is not TOML"),
    ],
)
def test_what_means_nothing_is_named_with_file_key_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_budgets(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_others_may_stand_beside_us_in_a_project_but_not_below_us(tmp_path: Path) -> None:
    assert read_budgets(write(tmp_path, "[tool.ruff]\nx = 1\n", "pyproject.toml")).budgets == DEFAULT_BUDGETS.budgets
    with pytest.raises(InputError, match=r"tool\.gpa-lsp has no key 'gait'; did you mean 'gate'"):
        read_budgets(write(tmp_path, "[tool.gpa-lsp.gait]\n", "pyproject.toml"))
