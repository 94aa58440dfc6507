"""Two real measurements of one program, before and after an edit, remembered: the same verdicts as comparing the profiles themselves."""

from pathlib import Path

import pytest

from gpa_lsp.report.compare import compare_reports
from gpa_lsp.report.history.model import KernelHistory
from gpa_lsp.report.history.past import remember_kernels
from gpa_lsp.report.history.recording import Surroundings
from gpa_lsp.report.history.store import History
from gpa_lsp.report.kernel_lines import find_body
from gpa_lsp.report.model import Report
from tests.real_reports import analyse_report

pytestmark = pytest.mark.corpus

BEFORE, AFTER = "v100_miniweather_baseline_2022.2.ncu-rep", "v100_miniweather_divtomult_2022.2.ncu-rep"


def remember(history: History, report: Report) -> dict[str, KernelHistory]:
    described = []
    for kernel in report.kernels:
        body = find_body(kernel)
        measured_ns = (kernel.measured_unix_s or 0) * 1_000_000_000
        surroundings = Surroundings(
            measured_ns=measured_ns, read_ns=measured_ns, files={}, body=None if body is None else body[0]
        )
        described.append((kernel, surroundings))
    found = remember_kernels(history, described)
    return {past.run.measurement.key.mangled_name: past for past in found if past is not None}


def test_the_past_is_what_comparing_the_profiles_says(tmp_path: Path) -> None:
    with History(tmp_path / "history.db") as history:
        assert all(past.previous is None for past in remember(history, analyse_report(BEFORE)).values())
        pasts = remember(history, analyse_report(AFTER))
        assert remember(history, analyse_report(AFTER)) == pasts
    compared = compare_reports(analyse_report(BEFORE), analyse_report(AFTER)).kernels
    assert len(compared) == len(pasts) == 5
    for pair in compared:
        past = pasts[pair.after.mangled_name].previous
        assert past is not None
        assert (past.verdict, past.time, past.instructions_ratio) == (pair.verdict, pair.time, pair.instructions_ratio)
        assert [(part.name, part.before_ns) for part in past.reasons] == [
            (part.name, part.before_ns) for part in pair.reasons
        ]
    assert (tmp_path / "history.db").stat().st_size < 1 << 20


def test_reading_them_the_other_way_round_tells_the_same_when_asked_again(tmp_path: Path) -> None:
    with History(tmp_path / "history.db") as history:
        early = remember(history, analyse_report(AFTER))
        remember(history, analyse_report(BEFORE))
        late = remember(history, analyse_report(AFTER))
    assert all(past.previous is None for past in early.values())
    assert all(past.previous is not None for past in late.values())
