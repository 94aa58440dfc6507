"""Workflow commands survive whatever a path or a message holds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.document.check_view import list_notices
from gpa_lsp.document.findings import find_findings
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import make_command, write_github
from gpa_lsp.foundation.visible_text import make_visible
from tests.report_builder import build_kernel, build_report


def unescape(text: str) -> str:
    for code, character in (("%2C", ","), ("%3A", ":"), ("%25", "%")):
        text = text.replace(code, character)
    return text


@given(st.text(), st.text())
def test_anything_comes_back_out(message: str, file: str) -> None:
    command = make_command("notice", message, {"file": file, "line": "1"})
    found = re.fullmatch(r"::notice file=([^,:]*),line=1::([^\r\n]*)", command)
    assert found is not None
    assert (unescape(found[1]), unescape(found[2])) == (make_visible(file), make_visible(message))


@pytest.mark.parametrize(("line", "shown"), [(0, 1), (7, 7)])
def test_findings_have_a_file_and_a_line(line: int, shown: int) -> None:
    report = build_report(build_kernel(f"src/k.cu:{line}  NOP  ; membar=9"))
    (command,) = write_github(list_notices(report, find_findings(report)), PlaceNames()).splitlines()
    assert command.startswith(
        f"::notice file=src/k.cu,line={shown},title=membar%3A waiting for a memory fence to complete::100 %25 (±30) of the samples of kernel; "
    )
