"""Every command on real reports: what is printed adds up to what independent readers counted."""

import contextlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpa_lsp.cli.main import main
from tests.conftest import find_corpus
from tests.report_file.record_schema import read_schema

CORPUS = find_corpus()
REPORTS = sorted((CORPUS / "ncu").glob("*.ncu-rep")) if CORPUS is not None else []
VALIDATED_BYTES = 1_500_000
"""Larger documents are not validated whole: it takes the validator half a minute."""

pytestmark = pytest.mark.corpus


def run(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(arguments)
    return code, out.getvalue()


def count(kernels: Any, kind: str) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for kernel in kernels:
        for reason, samples in kernel["samples"]["by_reason"].items():
            counts[kernel["mangled_name"], reason] += samples[kind]
    return counts


def count_expected(launches: Any, kind: str) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for launch in launches:
        for reason, samples in launch[kind].items():
            counts[launch["mangled"], reason] += samples
    return counts


@pytest.mark.parametrize("report", REPORTS[::4], ids=lambda path: path.stem)
def test_json_holds_the_counted_samples(report: Path, corpus: Path) -> None:
    code, text = run("check", str(report), "--format", "json")
    assert code == 0
    document = json.loads(text)
    if len(text) < VALIDATED_BYTES:
        jsonschema.Draft202012Validator(read_schema()).validate(document)
    expected = json.loads((corpus / "expected_samples.json").read_text())[report.name]
    for ours, theirs in (("all", "all"), ("latency", "not_issued")):
        assert +count(document["kernels"], ours) == +count_expected(expected, theirs)
    for kernel in document["kernels"]:
        assert sum(row["samples"] for row in kernel["instructions"]) == kernel["samples"]["total"]
        assert sum(row["samples"] for row in kernel["lines"]) == kernel["samples"]["total"]
        assert sum(row["samples"] for row in kernel["functions"]) == kernel["samples"]["total"]


def test_json_of_templates_stays_small(corpus: Path) -> None:
    """Names of functions take two kilobytes each here: written at every instruction, they made 40 MB."""
    code, text = run("report", str(corpus / "ncu" / "a100_cutlass_sm80_2024.1.ncu-rep"), "--format", "json")
    assert code == 0
    assert len(text) < 8_000_000


@pytest.mark.parametrize("report", REPORTS[:1] + REPORTS[5:8], ids=lambda path: path.stem)
@pytest.mark.parametrize("command", ["check --format sarif", "check --format github", "report", "report sass"])
def test_every_other_command(command: str, report: Path) -> None:
    code, text = run(*command.split(), str(report))
    assert code == 0
    assert "scoreboard" in text
    assert "nan" not in text.lower().split()
