"""The architecture page says what the code says: rooms, floors, faces, catalogues, and what a room never imports."""

import ast
import re
import tomllib
from collections.abc import Iterator

import grimp
import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "gpa_lsp"
PAGE = (PACKAGE / "README.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
FLOORS = [re.split(r"[|:]", floor) for floor in CONTRACTS[0]["layers"]]
"""From the top; the names of one floor."""
ROOMS = {name.strip() for floor in FLOORS for name in floor if (PACKAGE / name.strip()).is_dir()}


def read_table(heading: str) -> list[list[str]]:
    """Cells of the table below a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([\w/]+)`", cell)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("gpa_lsp")


def test_the_rooms_on_the_page_are_the_rooms_there_are() -> None:
    listed = [name for row in read_table("The rooms") for name in names_in(row[0])]
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(listed) == sorted(ROOMS)
    assert folders == ROOMS


def test_the_rooms_stand_in_the_order_of_the_floors() -> None:
    floor_of = {name.strip(): number for number, floor in enumerate(FLOORS) for name in floor}
    numbers = [floor_of[name] for row in read_table("The rooms") for name in names_in(row[0])]
    assert numbers == sorted(numbers)


def list_named_modules(modules: set[str]) -> Iterator[tuple[str, str]]:
    """(module, module it names in a string): catalogues, workers and files of a package are found by name."""
    for module in sorted(modules):
        path = ROOT / f"{module.replace('.', '/')}.py"
        path = path if path.is_file() else path.with_suffix("") / "__init__.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in modules:
                yield module, node.value


def list_entries(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    """(module, module of another room that it imports), imports for types alone and inside functions included."""
    found = {(one, other) for one in graph.modules for other in graph.find_modules_directly_imported_by(one)}
    for importer, entered in sorted(found | set(list_named_modules(graph.modules))):
        if entered.count(".") and importer.split(".")[1:2] != entered.split(".")[1:2]:
            yield importer, entered


def test_a_room_is_entered_through_its_face(graph: grimp.ImportGraph) -> None:
    """The third column names the modules that other rooms import, all of them and no other; ``__init__`` is the room's own."""
    faces = {
        f"gpa_lsp.{room}.{module.replace('/', '.')}".removesuffix(".__init__")
        for row in read_table("The rooms")
        for room in names_in(row[0])
        for module in names_in(row[2])
    }
    entries = list(list_entries(graph))
    assert [f"{importer} enters {entered}" for importer, entered in entries if entered not in faces] == []
    assert sorted(faces - {entered for _, entered in entries}) == []


def test_every_module_is_in_a_room() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def list_catalogues() -> Iterator[str]:
    """The attributes that catalogues and their members are loaded with, once per module that loads."""
    place_of_attribute = {"load_catalogue": 1, "load_member": 2}
    for path in PACKAGE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        names = [(getattr(call.func, "id", ""), call.args) for call in calls]
        attributes = [args[place_of_attribute[name]] for name, args in names if name in place_of_attribute]
        yield from {str(one.value) for one in attributes if isinstance(one, ast.Constant)}


def test_every_catalogue_is_listed_with_what_its_files_define() -> None:
    listed = [
        (folder, attribute)
        for row in read_table("Catalogues: where things are added")
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


def test_a_room_never_imports_what_the_page_says_it_never_imports(graph: grimp.ImportGraph) -> None:
    broken = []
    rows = read_table("What must not happen")
    assert {name for row in rows for name in names_in(row[0])} == ROOMS
    for room, forbidden in ((names_in(row[0])[0], row[1]) for row in rows):
        named = names_in(forbidden)
        others = {
            "every other room": sorted(ROOMS - {room}),
            "every room but `basis`": sorted(ROOMS - {room, "basis"}),
        }.get(forbidden, named)
        assert set(others) <= ROOMS
        broken += [
            f"{importer} imports {imported}"
            for importer in graph.modules
            if importer == f"gpa_lsp.{room}" or importer.startswith(f"gpa_lsp.{room}.")
            for imported in graph.find_modules_directly_imported_by(importer)
            if imported.split(".")[1:2] and imported.split(".")[1] in others
        ]
    assert broken == []


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", PACKAGE / "README.md", ROOT / "fixtures" / "README.md"):
        for target in re.findall(
            r"\]\(([^)#:]+)(?:#[^)]*)?\)|(?:src|srcset|href)=\"([^\":#]+)\"", page.read_text(encoding="utf-8")
        ):
            assert (page.parent / "".join(target)).exists(), f"{page.relative_to(ROOT)} links to {''.join(target)}"
