"""Properties that every answer has, for any profile."""

import math

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, Answer


def check_answer(answer: Answer) -> None:
    """Ratios are parts, rows fit their columns, curves ascend, and no sentence shows what is no number."""
    assert answer.summary.endswith(".")
    texts = [answer.summary, *(finding.text for finding in answer.findings), *(table.note for table in answer.tables)]
    assert not [text for text in texts if {"nan", "inf", "None"} & set(text.replace(",", " ").split())]
    for bar in answer.bars:
        assert 0 <= bar.ratio <= 1
        assert 0 <= bar.ceiling_ratio <= 1
    for finding in answer.findings:
        assert finding.text
        assert finding.share_ratio is None or 0 <= finding.share_ratio <= 1
    assert len(answer.marks) <= MOST_MARKS
    assert all(mark.value > 0 and 0 < mark.share_ratio <= 1 + 1e-9 for mark in answer.marks)
    for table in answer.tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert table.current_row is None or 0 <= table.current_row < len(table.rows)
        assert not [cell for row in table.rows for cell in row if isinstance(cell, float) and not math.isfinite(cell)]
    for chart in answer.charts:
        for series in chart.series:
            assert len(series.xs) == len(series.ys) > 0
            assert list(series.xs) == sorted(set(series.xs))
            assert all(0 <= y <= 1 for y in series.ys)
    if not answer.is_known:
        assert answer.missing
