"""The house rules that no linter knows."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house.count_house import parse_where
from tests.patience import LIMIT_S

ALLOWED_IN_ROOT = {
    *("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"),
    *("editors", "fixtures", "gpa_lsp", "tests"),
}
LONGEST_MODULE_LINES = 600
FORBIDDEN_MODULE_NAMES = re.compile(r"^(utils?|helpers?|common|misc|base|manager|core)$")
PATHS_OF_A_MACHINE = re.compile(r"/(?:work|root)/[a-z]")
NOT_UTF8 = {".cubin", ".fatbin", ".o", ".so", ".png", ".ncu-rep"}


def tracked_files() -> list[Path]:
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True, timeout=LIMIT_S
        ).stdout
    except (OSError, subprocess.SubprocessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def package_modules() -> Iterator[Path]:
    return (ROOT / "gpa_lsp").rglob("*.py")


def test_the_root_holds_what_it_should():
    top = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert {name for name in top if not name.startswith(".")} == ALLOWED_IN_ROOT


def test_modules_are_small():
    too_long = {}
    for path in package_modules():
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONGEST_MODULE_LINES:
            too_long[path.relative_to(ROOT).as_posix()] = lines
    assert too_long == {}


def test_modules_are_named_by_what_they_hold():
    assert [path.name for path in package_modules() if FORBIDDEN_MODULE_NAMES.match(path.stem)] == []


def test_no_path_of_a_machine_is_in_the_package():
    found = []
    for path in tracked_files():
        if path.suffix in NOT_UTF8 or path.is_relative_to(ROOT / "tests"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in PATHS_OF_A_MACHINE.finditer(text)]
    assert found == []


def test_nothing_in_the_package_prints_but_the_command_line():
    """Standard output is the language server's wire."""
    found = []
    for path, tree in parse_where(r"\bprint\("):
        if path.is_relative_to(ROOT / "gpa_lsp" / "cli"):
            continue
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        printing = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print")
        found += [f"{path.relative_to(ROOT)}:{call.lineno}" for call in printing]
    assert found == []


def test_every_test_module_asserts_something():
    tests = (ROOT / "tests").rglob("test_*.py")
    assert [
        path.relative_to(ROOT).as_posix()
        for path in tests
        if not re.search(r"^ +assert\b|\.raises\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    ] == []


def test_the_script_that_proves_the_readme_runs_the_readmes_command():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "poe check" in readme
    assert "poe check" in script
    assert ".[dev]" in readme
    assert ".[dev]" in script


def test_the_server_answers_initialize_without_what_takes_long_to_import() -> None:
    """numpy, SQLite, tree-sitter and the tables are needed later, by the worker or by the first answers."""
    program = (
        "import sys; from gpa_lsp.editor.protocol.server import Server; Server(); "
        "print([name for name in ('numpy', 'sqlite3', 'tree_sitter', 'google.protobuf', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# a dataclass that is no struct, because its fields are read late
NO_STRUCTS = {"gpa_lsp/code/ptx/model.py"}


def test_records_are_structs():
    """The standard library's decorator compiles six methods at import, for each of hundreds of types; msgspec's type compiles none."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in package_modules()
        if re.search(
            r"^from dataclasses import [^\n]*\bdataclass\b|@dataclasses\.dataclass\b", path.read_text("utf-8"), re.M
        )
    }
    assert found == NO_STRUCTS


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 leaves the place of a turn that fails (gh-106052): ``(?>(?:…)*)`` says the same and is right in all."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in parse_where(r"\)[*+?]\+")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")
        for text in ast.walk(node)
        if isinstance(text, ast.Constant) and re.search(r"(?<!\\)\)[*+?]\+", _read_pattern(text.value))
    ]
    assert found == []


def _read_pattern(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value if isinstance(value, str) else ""
