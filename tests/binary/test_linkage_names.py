"""Linkage names: mangled ones are demangled, others stay."""

import ast
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.linkage_names import demangle
from tests.conftest import ROOT


@given(st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=4).filter(lambda name: name[0] != "_"))
def test_no_name_of_a_person_is_taken_for_a_type(name: str) -> None:
    assert demangle(name) == name


@pytest.mark.parametrize(
    "name",
    ["f", "i", "d", "v", "x", "a", "Pf", "PKc", "None", "_f", "__f", "_Z", "_Zfoo", "_R", "_Reduce", "_ZN\0", ""],
)
def test_what_is_no_linkage_name_stays(name: str) -> None:
    assert demangle(name) == name


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("_Z1fi", "f(int)"),
        ("__Z1fi", "f(int)"),
        ("_RNvC3foo3bar", "foo::bar"),
        ("?f@@YAXH@Z", "void __cdecl f(int)"),
        ("$_Z4kernPf$_Z3recfi", "rec(float, int)"),
        ("$kernel$f", "f"),
    ],
)
def test_linkage_names_become_readable(name: str, readable: str) -> None:
    assert demangle(name) == readable


def test_one_place_demangles() -> None:
    found = []
    for path in (ROOT / "gpa_lsp").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "pycxxfilt" in text and any(
            isinstance(node, ast.Import | ast.ImportFrom) and "pycxxfilt" in ast.dump(node)
            for node in ast.walk(ast.parse(text))
        ):
            found.append(path.relative_to(ROOT).as_posix())
    assert found == ["gpa_lsp/code/binary/linkage_names.py"]
