from pathlib import Path

import pytest

from tests.profile.report_builder import ReportBuilder


@pytest.fixture
def report(tmp_path: Path) -> ReportBuilder:
    """A report to fill and read."""
    return ReportBuilder(folder=tmp_path)
