"""A report in which anything was replaced by anything is read, or refused with its place: never a guess, never another error."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.report.saved.store import read_report
from tests.conftest import examples
from tests.report_file.json_documents import change, dump, write
from tests.report_file.test_earlier_versions import make_known_report, make_unknown_report

_VALUES = [None, True, 0, 1, -1, 2, 99, 1 << 62, 1 << 70, 0.5, -0.5, 1e300, "", "1", "wait", [], {}, [0], [[]], {"a": 0}, ...]  # fmt: skip


@cache
def write_documents() -> tuple[str, ...]:
    reports = (make_known_report(), make_unknown_report())
    return tuple(json.dumps(dump(report, is_expanded=expand)) for report in reports for expand in (False, True))


@cache
def list_pointers(text: str) -> list[str]:
    return list(_walk(json.loads(text), ""))


def _walk(value: Any, pointer: str) -> Iterator[str]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if "/" not in str(key) and not (isinstance(value, dict) and str(key).isdigit()):
            yield f"{pointer}/{key}"
            yield from _walk(part, f"{pointer}/{key}")


@examples(300)
@given(number=st.integers(0, 3), place=st.integers(0, 1 << 30), value=st.sampled_from(_VALUES))
def test_a_replaced_value_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, number: int, place: int, value: Any
) -> None:
    text = write_documents()[number]
    pointers = list_pointers(text)
    document = json.loads(text)
    pointer = pointers[place % len(pointers)]
    change(document, pointer, value)
    path: Path = write(tmp_path_factory.getbasetemp() / "damaged.json", document)
    try:
        read_report(path)
    except InputError as error:
        assert error.path == path
        assert error.remedy
        assert (error.place or "") == "" or _exists(document, error.place or ""), (pointer, error)


def _exists(document: Any, pointer: str) -> bool:
    """Whether a pointer names something in the document."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(key) if isinstance(document, list) else key]
        except (KeyError, IndexError, ValueError, TypeError):
            return False
    return True
