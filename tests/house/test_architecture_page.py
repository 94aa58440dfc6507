"""The architecture page says what the code says: wings, rooms, floors, catalogues, the papers' places, and what a room never imports."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house.count_house import FACES, build_graph, find_faces, list_entries, name_face, parse_where

PACKAGE = ROOT / "gpa_lsp"
PAGE = (PACKAGE / "README.md").read_text(encoding="utf-8")
MOST_LINES = 400
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
WINGS = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
ROOMS = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/*/__init__.py")}

# What each paper numbers; every one has a row.
NUMBERED: dict[str, dict[str, Iterable[int | str]]] = {
    "GPA": {"equation": range(1, 11), "table": ("I", "II", "III")},
    "Starlight": {"equation": range(1, 5), "table": range(1, 5)},
    "CUDAAdvisor": {"equation": range(1, 2), "table": range(1, 4)},
    "Warpspeed": {"equation": range(1, 7), "table": range(1, 2)},
    "The hybrid framework": {
        "equation": range(1, 9),
        "table": ("I", "II", "III", "IV", "V", "VI"),
        "algorithm": range(1, 4),
    },
}
# How code names each paper; a folder may be named after it instead.
NAMED = {
    "GPA": r"\bGPA\b",
    "Starlight": r"(?i)\bstarlight\b",
    "CUDAAdvisor": r"(?i)\bcudaadvisor\b",
    "Warpspeed": r"Ernst et al\.|(?i:warpspeed)",
    "The hybrid framework": r"\bhybrid\b",
}
ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")

_NUMBER = r"[0-9IVX]+[a-z]?(?:[.-][0-9A-Z]+)*(?: \([A-E]\))?"
_CITATION = re.compile(
    rf"(?i:\b(equation|table|figure|algorithm|section|rule)s?) ({_NUMBER}(?:(?:, | and | to |–){_NUMBER})*)"
)


def read_section(heading: str, level: str = "##") -> str:
    return PAGE.partition(f"\n{level} {heading}\n")[2].partition(f"\n{level} ")[0].partition("\n## ")[0]


def read_table(section: str) -> list[list[str]]:
    """Cells of the table in a section, without its head."""
    rows = [
        line.strip().removeprefix("|").removesuffix("|").split("|")
        for line in section.split("\n")
        if line.startswith("|")
    ]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([\w/]+)`", cell)


def find_floors(container: str) -> dict[str, int]:
    """Name → floor, the top one first, by the contract about a package's own folders; empty where there is none."""
    for contract in CONTRACTS:
        if contract.get("containers") == [container]:
            floors = [re.split(r"[|:]", floor) for floor in contract["layers"]]
            return {name.strip(): number for number, floor in enumerate(floors) for name in floor}
    return {}


def list_page_rooms() -> list[str]:
    return [name for row in read_table(read_section("Wings and rooms")) for name in names_in(row[0])]


def list_cited(text: str) -> set[tuple[str, str]]:
    """(kind, number) of everything that a text cites by number; ranges are written out, and ``4a`` cites ``4`` as well."""
    found = set()
    plain = re.sub(r"\s+(?:#|//|\*)?\s*", " ", text)
    for kind, numbers in _CITATION.findall(plain):
        parts = re.split(r"(, | and | to |–)", numbers)
        for place in range(0, len(parts), 2):
            found.add((kind.lower(), parts[place]))
            found.add((kind.lower(), re.sub(r"(?<=\d)[a-z]$", "", parts[place])))
            if place and parts[place - 1] in {" to ", "–"}:
                found |= {(kind.lower(), number) for number in _list_between(parts[place - 2], parts[place])}
    return found


def _list_between(first: str, last: str) -> list[str]:
    if first in ROMAN and last in ROMAN:
        return list(ROMAN[ROMAN.index(first) : ROMAN.index(last)])
    before, _, start = first.rpartition(".")
    stem, _, end = last.rpartition(".")
    if before != stem or not start.isdigit() or not end.isdigit():
        return []
    return [f"{before}.{number}".removeprefix(".") for number in range(int(start), int(end))]


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= MOST_LINES


def test_wings_and_rooms_on_the_page_are_those_there_are() -> None:
    listed = list_page_rooms()
    assert sorted(name for name in listed if "/" not in name) == sorted(WINGS)
    assert sorted(name for name in listed if "/" in name) == sorted(ROOMS)
    assert set(find_floors("gpa_lsp")) - {"__main__"} == WINGS


def test_wings_and_rooms_stand_in_the_order_of_the_contracts() -> None:
    listed = list_page_rooms()
    floors = find_floors("gpa_lsp")
    order = [floors[name.partition("/")[0]] for name in listed]
    assert order == sorted(order)
    for wing in WINGS:
        inside = find_floors(f"gpa_lsp.{wing}")
        rooms = [name.removeprefix(f"{wing}/") for name in listed if name.startswith(f"{wing}/")]
        order = [inside[name] for name in rooms if name in inside]
        assert order == sorted(order), f"rooms of {wing}: {rooms}"


def test_a_wing_stands_before_its_rooms() -> None:
    listed = list_page_rooms()
    assert [name for name in listed if "/" in name and listed.index(name.partition("/")[0]) > listed.index(name)] == []


def test_a_wing_is_entered_through_its_face() -> None:
    """``faces.toml`` names the modules that other wings import, all of them and no other."""
    faces = tomllib.loads(FACES.read_text(encoding="utf-8"))
    entries = [(importer, entered, name_face(entered)) for importer, entered in list_entries()]
    assert [
        f"{importer} enters {entered}" for importer, entered, (wing, name) in entries if name not in faces.get(wing, ())
    ] == [], "enter the wing through its face, or widen it: python -m tests.house.count_house --write"
    assert faces == find_faces(), "no other wing enters some of these: python -m tests.house.count_house --write"


def test_every_module_is_in_a_wing() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_a_room_never_imports_what_the_page_says_it_never_imports() -> None:
    graph = build_graph()
    broken, named = [], 0
    for row in read_table(read_section("Wings and rooms")):
        assert len(row) == 4, row
        forbidden = names_in(row[2])
        named += len(forbidden)
        assert set(forbidden) <= WINGS | ROOMS, row
        for room in names_in(row[0]):
            broken += [
                f"{importer} imports {imported}"
                for importer in sorted(graph.modules)
                if _is_in(importer, room)
                for imported in sorted(graph.find_modules_directly_imported_by(importer))
                if any(_is_in(imported, other) and not _is_in(imported, room) for other in forbidden)
            ]
    assert broken == []
    assert named > 20


def _is_in(module: str, room: str) -> bool:
    name = f"gpa_lsp.{room.replace('/', '.')}"
    return module == name or module.startswith(f"{name}.")


def list_catalogues() -> Iterator[str]:
    """The attributes that catalogues and their members are loaded with, once per module that loads."""
    place_of_attribute = {"load_catalogue": 1, "load_member": 2}
    for _, tree in parse_where("|".join(place_of_attribute)):
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = [(getattr(call.func, "id", ""), call.args) for call in calls]
        attributes = [args[place_of_attribute[name]] for name, args in names if name in place_of_attribute]
        yield from {str(one.value) for one in attributes if isinstance(one, ast.Constant)}


def test_every_catalogue_is_listed_with_what_its_files_define() -> None:
    listed = [
        (folder, attribute)
        for row in read_table(read_section("Catalogues: where things are added"))
        for folder in names_in(row[1])
        for attribute in names_in(row[2])
    ]
    assert sorted(attribute for _, attribute in listed) == sorted(list_catalogues())
    lacking = [
        f"{path.relative_to(ROOT)}: {attribute}"
        for folder, attribute in listed
        for path in (PACKAGE / folder).glob("[!_]*.py")
        if not re.search(rf"^{attribute}\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert lacking == []
    assert all(any((PACKAGE / folder).glob("[!_]*.py")) for folder, _ in listed)


def test_the_example_of_an_optimizer_uses_what_the_file_it_shortens_uses() -> None:
    section = read_section("Catalogues: where things are added")
    (code,) = re.findall(r"```python\n(.+?)```", section, re.DOTALL)
    (target,) = re.findall(r"\]\(([^)]+)\), shortened:", section)
    whole = (PACKAGE / target).read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 15
    loaded = {
        node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    loaded |= {str(node.arg) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.keyword)}
    assert {name for name in loaded - {"edges", "regions"} if not re.search(rf"\b{name}\b", whole)} == set()


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_number_of_a_paper_has_a_row(paper: str) -> None:
    rows = read_table(read_section(paper, "###"))
    listed = {item for row in rows for item in list_cited(row[0])}
    numbered = {(kind, str(number)) for kind, numbers in NUMBERED[paper].items() for number in numbers}
    assert sorted(numbered - listed) == []


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_file_of_a_row_cites_the_paper_by_the_number_of_the_row(paper: str) -> None:
    lacking = []
    for item, _, where in read_table(read_section(paper, "###")):
        items = list_cited(item)
        assert items, f"{item} has no number"
        targets = re.findall(r"\]\(([^)]+)\)", where)
        assert targets or where.startswith("not built: "), f"{paper}, {item}: neither a file nor a reason"
        for target in targets if not where.startswith("not built: ") else ():
            path = (PACKAGE / target).resolve()
            if path.is_file():
                uncited = _find_uncited(path, paper, items)
                lacking += [f"{paper}, {item}: {target} does not cite {kind} {number}" for kind, number in uncited]
            elif not path.is_dir():
                lacking.append(f"{paper}, {item}: {target} is not there")
    assert lacking == []


def _find_uncited(path: Path, paper: str, items: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Items that a file does not cite; all of them where it does not name the paper. One kind that is cited whole suffices."""
    text = path.read_text(encoding="utf-8")
    if not re.search(NAMED[paper], f"{path.parent.name} {text}"):
        return sorted(items)
    cited = list_cited(text)
    kinds = {kind for kind, _ in items}
    if any({item for item in items if item[0] == kind} <= cited for kind in kinds):
        return []
    return sorted(items - cited)


def test_citations_are_read_as_people_write_them() -> None:
    assert list_cited("GPA's Equations 2, 4 and 6 to 8") == {("equation", one) for one in "24678"}
    assert list_cited("section\n    4.2 (A), Figure 4d") >= {("section", "4.2 (A)"), ("figure", "4")}
    assert list_cited("Tables III to VI") == {("table", one) for one in ("III", "IV", "V", "VI")}
    assert list_cited("sections 4.3 to 4.5") == {("section", one) for one in ("4.3", "4.4", "4.5")}
    assert list_cited("Section III-B1") == {("section", "III-B1")}


@pytest.mark.parametrize(
    "page", ("README.md", "gpa_lsp/README.md", "fixtures/README.md", "tests/README.md", ".github/CONTRIBUTING.md")
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(
        r"\]\(([^)#:]+)(?:#[^)]*)?\)|(?:src|srcset|href)=\"([^\":#]+)\"", path.read_text(encoding="utf-8")
    ):
        assert (path.parent / "".join(target)).exists(), f"{page} links to {''.join(target)}"
