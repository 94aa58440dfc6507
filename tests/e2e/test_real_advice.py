"""Blame and advice of every real report: saved, read back, indexed by line, and shown in every form."""

import json
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.advice.model import LIBRARY_USE
from gpa_lsp.document.advice_notices import list_advice_notices
from gpa_lsp.document.advice_view import build_advice
from gpa_lsp.document.github import write_github
from gpa_lsp.document.layout import read_plain
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import build_sarif
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.report.model import Report
from gpa_lsp.report.pairs import build_pair_index
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved.store import read_report, write_report
from tests.conftest import find_corpus
from tests.render.test_advice_markdown import check_tables
from tests.render.test_sarif import check_required
from tests.report_file.json_documents import expand

CORPUS = find_corpus()
REPORTS = sorted(json.loads((CORPUS / "expected_samples.json").read_text())) if CORPUS else []

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand"),
]


@cache
def advise_report(name: str) -> Report:
    assert CORPUS is not None
    return analyse([CORPUS / "ncu" / name])


@pytest.mark.parametrize("name", REPORTS)
def test_saved_and_read_back(name: str, tmp_path: Path) -> None:
    report = advise_report(name)
    write_report(report, tmp_path / "r.json", with_sources=False)
    back = read_report(tmp_path / "r.json")
    for saved, kernel in zip(back.kernels, report.kernels, strict=True):
        assert saved.advice == kernel.advice
        assert expand(saved.blame) == expand(kernel.blame)


@pytest.mark.parametrize("name", REPORTS)
def test_pairs_of_every_line_add_up_to_its_samples(name: str) -> None:
    for kernel in advise_report(name).kernels:
        index = build_pair_index(kernel)
        assert index is not None
        for row in kernel.lines:
            if row.source_line is None:
                continue
            found = index.measure_line(row.source_line)
            parts = found.waiting_samples + found.own_samples + found.unattributed_samples
            assert parts == pytest.approx(row.inclusive_samples)
            waits = sum(pair.samples for pair in index.list_waits(row.source_line))
            assert waits == pytest.approx(found.waiting_samples)


@pytest.mark.parametrize("name", REPORTS)
def test_shown_in_every_form(name: str, tmp_path: Path) -> None:
    report, places = advise_report(name), PlaceNames()
    advice = [one for kernel in report.kernels if kernel.advice is not None for one in kernel.advice.advice]
    lines = [
        read_plain(line)
        for line in write_terminal(build_advice(report, places, max_kernels=None, max_advice=None), 100, indent=0)
    ]
    priced = [one for one in advice if one.optimizer != LIBRARY_USE]  # which states no gain
    assert sum(line.strip().startswith(("range ", "at most ")) for line in lines) == len(priced)
    silent = [kernel for kernel in report.kernels if kernel.advice is None or not kernel.advice.advice]
    assert lines.count("No advice") == len(silent)
    check_tables(
        list(
            write_markdown(build_advice(report, places, max_kernels=None, max_advice=None, has_table=True), folds=True)
        )
    )
    notices = list_advice_notices(report, places)
    log = json.loads(json.dumps(build_sarif(notices, places, tmp_path), allow_nan=False))
    check_required(log)
    assert len(log["runs"][0]["results"]) == len(advice)
    commands = write_github(notices, places).splitlines()
    assert len(commands) == len(report.problems) + len(advice)
