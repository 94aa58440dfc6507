"""Counts of the house and how its wings enter each other: what the budgets and faces are held to.

    python -m tests.house.count_house                              print the counts, and how far below or above its budget each is
    python -m tests.house.count_house --write                      lower budgets to the counts, drop twins that are gone, write faces
    python -m tests.house.count_house --write --raise WING REASON  raise the budget of a wing, of "package", "tests" or the "twins" to what there is

``budgets.toml`` and ``faces.toml`` are written by this module alone. A budget that is missing is taken as it is counted.
"""

import argparse
import ast
import datetime
import itertools
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import grimp

from tests.conftest import ROOT

BUDGETS = ROOT / "tests" / "house" / "budgets.toml"
FACES = ROOT / "tests" / "house" / "faces.toml"
FIGURES = ("lines", "modules", "classes")

_PACKAGE = "gpa_lsp"
# Two records are twins when they share at least this many fields, and this part of the fields of both.
_LEAST_SHARED_FIELDS = 3
_LEAST_SHARED_RATIO = 0.9

_BUDGETS_HEAD = """\
# What the house may have: lines and modules of Python and classes, per wing and in all. Written by `python -m tests.house.count_house --write`,
# which lowers budgets; `--raise WING REASON` raises one and keeps the reason here. Budgets that are above their count may be lowered at any time.
"""
_TWINS_HEAD = """\
# Pairs of records with the same fields, by class name; the list only shrinks. Two records with the same fields are one: give both places one type.
"""
_FACES_HEAD = """\
# The faces of the wings: the modules that other wings import; everything else is the wing's own. Imports for types alone, imports inside functions
# and modules named in strings count. "__init__" is the wing's own. Written by `python -m tests.house.count_house --write`.
"""


class Module(NamedTuple):
    name: str
    wing: str  # folder of the package that holds it; "" for modules in no wing
    lines: int
    classes: tuple[ast.ClassDef, ...]
    named: frozenset[str]  # string constants that may name a module


def parse_where(words: str, *folders: str, files: str = "*.py") -> Iterator[tuple[Path, ast.Module]]:
    """Modules in folders of the repository, by default the package's, whose text has what an expression finds."""
    sought = re.compile(words, re.MULTILINE)  # to parse all of them takes seconds
    for folder in folders or ("gpa_lsp",):
        for path in sorted((ROOT / folder).rglob(files)):
            if sought.search(text := path.read_text(encoding="utf-8")):
                yield path, ast.parse(text)


@cache
def read_modules(top: str) -> tuple[Module, ...]:
    """Modules below a folder of the repository, parsed once."""
    return tuple(read_module(path) for path in sorted((ROOT / top).rglob("*.py")) if "node_modules" not in path.parts)


def read_module(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(ROOT).with_suffix("").parts
    nodes = list(ast.walk(ast.parse(text)))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return Module(
        name=".".join(parts).removesuffix(".__init__"),
        wing=parts[1] if len(parts) > 2 else "",
        lines=len(text.splitlines()),
        classes=tuple(node for node in nodes if isinstance(node, ast.ClassDef)),
        named=frozenset(one for one in texts if one.startswith(f"{_PACKAGE}.")),
    )


def count(modules: tuple[Module, ...]) -> dict[str, int]:
    return {
        "lines": sum(module.lines for module in modules),
        "modules": len(modules),
        "classes": sum(len(module.classes) for module in modules),
    }


@cache
def count_house() -> dict[str, dict[str, int]]:
    """Figures of the package, of the tests and of each wing."""
    modules = read_modules(_PACKAGE)
    wings = sorted({module.wing for module in modules} - {""})
    return {
        "package": count(modules),
        "tests": count(read_modules("tests")),
        **{wing: count(tuple(module for module in modules if module.wing == wing)) for wing in wings},
    }


def list_records(classes: Iterable[ast.ClassDef]) -> list[tuple[str, frozenset[str]]]:
    """(class name, own fields) of every record: dataclasses, named tuples and structs, and what inherits from one by name."""
    classes, kinds = list(classes), {"NamedTuple", "Struct"}
    while True:
        records = [node for node in classes if _is_dataclass(node) or kinds & set(map(_last_name, node.bases))]
        if {node.name for node in records} <= kinds:
            return [(node.name, frozenset(_list_fields(node))) for node in records]
        kinds |= {node.name for node in records}


def _list_fields(node: ast.ClassDef) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(_last_name(one.func if isinstance(one, ast.Call) else one) == "dataclass" for one in node.decorator_list)


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).partition("[")[0].rpartition(".")[2]


def pair_records(records: Sequence[tuple[str, frozenset[str]]]) -> list[tuple[str, str]]:
    """Pairs of records with nearly the same fields, by class name, sorted; a pair that is there twice is listed twice."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for index, (_, fields) in enumerate(records):
        for field in fields:
            holders[field].append(index)
    shared = Counter(pair for indexes in holders.values() for pair in itertools.combinations(indexes, 2))
    twins = []
    for (one, other), number in shared.items():
        largest = max(len(records[one][1]), len(records[other][1]))
        if number >= _LEAST_SHARED_FIELDS and number >= _LEAST_SHARED_RATIO * largest:
            first, second = sorted((records[one][0], records[other][0]))
            twins.append((first, second))
    return sorted(twins)


@cache
def find_twins() -> tuple[tuple[str, str], ...]:
    """Pairs of records of the package with nearly the same fields, as :func:`pair_records` has them."""
    classes = (node for module in read_modules(_PACKAGE) for node in module.classes)
    return tuple(pair_records(list_records(classes)))


@cache
def build_graph() -> grimp.ImportGraph:
    return grimp.build_graph(_PACKAGE)


@cache
def list_entries() -> tuple[tuple[str, str], ...]:
    """(module, module of another wing that it imports or names in a string), sorted."""
    graph = build_graph()
    found = {(one, other) for one in graph.modules for other in graph.find_modules_directly_imported_by(one)}
    for module in read_modules(_PACKAGE):
        found |= {(module.name, named) for named in module.named & graph.modules}
    crossing = {(one, other) for one, other in found if "." in other and one.split(".")[1:2] != other.split(".")[1:2]}
    return tuple(sorted(crossing))


def name_face(module: str) -> tuple[str, str]:
    """(wing, name of a module within it); ``__init__`` for the wing's own package."""
    _, wing, *rest = module.split(".")
    return wing, ".".join(rest) or "__init__"


@cache
def find_faces() -> dict[str, list[str]]:
    """Wing → modules of it that other wings enter, sorted."""
    faces: dict[str, set[str]] = {module.wing: set() for module in read_modules(_PACKAGE) if module.wing}
    for _, entered in list_entries():
        wing, name = name_face(entered)
        faces[wing].add(name)
    return {wing: sorted(names) for wing, names in sorted(faces.items())}


def read_budgets() -> dict[str, Any]:
    return tomllib.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.is_file() else {}


def choose_budgets(old: dict[str, Any], reasons: dict[str, str], today: str) -> dict[str, Any]:
    """New content of ``budgets.toml``: the least of budget and count, unless there is a reason to raise."""
    new: dict[str, Any] = {}
    for name, counts in count_house().items():
        before = old.get(name, counts)
        if name in reasons:
            line = f"{today}: {reasons[name]}"
            new[name] = {**counts, "raised": [*before.get("raised", []), line]}
        else:
            new[name] = {**before, **{figure: min(before[figure], counts[figure]) for figure in FIGURES}}
    found = Counter(find_twins())
    kept = found if "twins" in reasons or "twins" not in old else found & Counter(map(tuple, old["twins"]))
    new["twins"] = sorted(kept.elements())
    new["twins_raised"] = list(old.get("twins_raised", []))
    if "twins" in reasons:
        new["twins_raised"].append(f"{today}: {reasons['twins']}")
    return new


def write_budgets(budgets: dict[str, Any]) -> str:
    parts = [_BUDGETS_HEAD, _TWINS_HEAD, _write_list("twins", [list(pair) for pair in budgets["twins"]])]
    if budgets["twins_raised"]:
        parts.append(_write_list("twins_raised", budgets["twins_raised"]))
    for name, budget in budgets.items():
        if isinstance(budget, dict):
            parts.append(f"\n[{name}]\n" + "".join(f"{figure} = {budget[figure]}\n" for figure in FIGURES))
            if budget.get("raised"):
                parts.append(_write_list("raised", budget["raised"]))
    return "".join(parts)


def write_faces(faces: dict[str, list[str]]) -> str:
    return _FACES_HEAD + "".join("\n" + _write_list(wing, names) for wing, names in faces.items())


def _write_list(name: str, values: list[Any]) -> str:
    if not values:
        return f"{name} = []\n"
    return f"{name} = [\n" + "".join(f"    {json.dumps(value, ensure_ascii=False)},\n" for value in values) + "]\n"


def list_excesses(budgets: dict[str, Any]) -> list[str]:
    """Figures above their budgets, one line each."""
    return [
        f"{name}: {counts[figure]} {figure}, budget {budgets[name][figure]}"
        for name, counts in count_house().items()
        for figure in FIGURES
        if name in budgets and counts[figure] > budgets[name][figure]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write budgets.toml and faces.toml")
    parser.add_argument("--raise", nargs=2, action="append", default=[], metavar=("WING", "REASON"), dest="raised")
    given = parser.parse_args()
    reasons = dict(given.raised)
    unknown = set(reasons) - {*count_house(), "twins"}
    if unknown or any(not reason.strip() for reason in reasons.values()):
        parser.error(f"--raise takes one of {', '.join([*count_house(), 'twins'])}, and a reason")
    if given.write:
        BUDGETS.write_text(
            write_budgets(choose_budgets(read_budgets(), reasons, datetime.date.today().isoformat())), encoding="utf-8"
        )
        FACES.write_text(write_faces(find_faces()), encoding="utf-8")
    budgets = read_budgets()
    for name, counts in count_house().items():
        row = (f"{counts[figure]:>8} {figure} ({counts[figure] - budgets[name][figure]:+})" for figure in FIGURES)
        print(f"{name:<12}" + "".join(row) if name in budgets else f"{name:<12} has no budget")
    print(f"{len(find_twins())} pairs of records with the same fields")
    for line in list_excesses(budgets):
        print(f"above its budget: {line}")


if __name__ == "__main__":
    main()
