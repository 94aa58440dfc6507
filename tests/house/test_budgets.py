"""The house does not grow: each wing keeps to its budget of lines, modules and classes, and no record is written twice."""

import ast
import tomllib
from collections import Counter

from tests.house.count_house import (
    FIGURES,
    choose_budgets,
    count_house,
    find_twins,
    list_excesses,
    list_records,
    pair_records,
    read_budgets,
    write_budgets,
)

WHAT_TO_DO = """
Fold modules that one other module uses, delete what nothing calls, or give two places one implementation.
If something went elsewhere or the growth is worth it:
    python -m tests.house.count_house --write --raise WING "what grew, why, and what went for it"
"""


def test_every_wing_has_a_budget() -> None:
    budgets = read_budgets()
    named = {name for name, budget in budgets.items() if isinstance(budget, dict)}
    assert named == set(count_house()), "run python -m tests.house.count_house --write"


def test_nothing_is_above_its_budget() -> None:
    above = list_excesses(read_budgets())
    assert not above, "\n".join(above) + WHAT_TO_DO


def test_the_budgets_of_the_wings_add_up_to_the_package() -> None:
    """The package has its two top modules and the wings; nothing hides between the budgets."""
    counts = count_house()
    wings = [name for name in counts if name not in {"package", "tests"}]
    for figure in FIGURES:
        between = counts["package"][figure] - sum(counts[wing][figure] for wing in wings)
        assert 0 <= between <= (60 if figure == "lines" else 2)


def test_no_two_records_have_the_same_fields() -> None:
    """A pair that was merged or renamed leaves the list: the list only shrinks."""
    found, allowed = Counter(find_twins()), Counter(map(tuple, read_budgets()["twins"]))
    new = sorted((found - allowed).elements())
    gone = sorted((allowed - found).elements())
    assert not new, (
        f"{new} have nearly the same fields: give both places one type; after a rename alone: "
        'python -m tests.house.count_house --write --raise twins "renamed: OLD to NEW"'
    )
    assert not gone, f"{gone} are no twins any more: run python -m tests.house.count_house --write"


RECORDS = """
@dataclass(frozen=True)
class Edge:
    cause: int
    victim: int
    samples: float
class Row(NamedTuple):
    cause: int
    victim: int
    samples: float
class Written(msgspec.Struct, frozen=True):
    cause: int
class Heir(Written):
    other: str
class Plain:
    cause: int
"""


def test_records_are_found_in_every_form() -> None:
    classes = [node for node in ast.walk(ast.parse(RECORDS)) if isinstance(node, ast.ClassDef)]
    records = list_records(classes)
    assert [name for name, _ in records] == ["Edge", "Row", "Written", "Heir"]
    assert pair_records(records) == [("Edge", "Row")]


def test_twins_share_three_fields_and_nine_tenths() -> None:
    ten = frozenset("abcdefghij")
    assert pair_records([("A", ten), ("B", ten - {"a"} | {"z"})]) == [("A", "B")]
    assert pair_records([("A", ten), ("B", ten - {"a", "b"} | {"y", "z"})]) == []
    assert pair_records([("A", frozenset("ab")), ("B", frozenset("ab"))]) == []
    assert pair_records([("A", ten), ("A", ten), ("B", ten)]) == [("A", "A"), ("A", "B"), ("A", "B")]


def test_budgets_are_lowered_and_never_raised_without_a_reason() -> None:
    counts = count_house()
    high = {name: {figure: number + 5 for figure, number in figures.items()} for name, figures in counts.items()}
    low = {name: {figure: number - 1 for figure, number in figures.items()} for name, figures in counts.items()}
    assert choose_budgets({**high, "twins": []}, {}, "2026-01-01")["tests"] == counts["tests"]
    kept = choose_budgets({**low, "twins": []}, {"tests": "a new oracle"}, "2026-01-01")
    assert kept["package"] == low["package"]
    assert kept["tests"] == {**counts["tests"], "raised": ["2026-01-01: a new oracle"]}
    assert kept["twins"] == []
    written = tomllib.loads(write_budgets(kept))
    assert written["tests"]["raised"] == ["2026-01-01: a new oracle"]
    assert written["package"] == low["package"]
