"""``gpa-lsp report --html``: where the page goes, and what goes into it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.report.saved.store import write_report
from tests.patience import LIMIT_S
from tests.render.html_report.page_examples import make_before_and_after, make_page_example

LEAD = "<!doctype html>"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A report saved as JSON."""
    file = tmp_path / "saved report.json"
    write_report(make_page_example(), file)
    return file


def test_the_page_is_written_to_a_file(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    main(["report", str(saved), "--html", "-o", str(page)])
    assert capsys.readouterr().out == ""
    assert page.read_text(encoding="utf-8").startswith(LEAD)


def test_without_a_file_and_a_terminal_it_goes_to_standard_output_as_utf8(saved: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpa_lsp", "report", str(saved), "--format", "html"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path.cwd())},
        timeout=LIMIT_S,
    )
    text = done.stdout.decode("utf-8")
    assert text.startswith(LEAD)
    assert "1.34–1.44×" in text
    assert list(tmp_path.glob("*.html")) == []


def test_on_a_terminal_it_gets_a_name_that_is_free(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gpa_lsp.cli.terminal.Terminal.is_interactive", True)
    main(["report", str(saved), "--html"])
    main(["report", str(saved), "--html"])
    said = capsys.readouterr()
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["saved report-2.html", "saved report.html"]
    assert "writing saved report-2.html" in said.err
    assert said.out == ""


def test_texts_of_sources_can_be_left_out(saved: Path, tmp_path: Path) -> None:
    sizes = []
    for extra in ([], ["--no-sources"]):
        page = tmp_path / "page.html"
        main(["report", str(saved), "--html", "-o", str(page), *extra])
        sizes.append(page.stat().st_size)
    assert sizes[1] < sizes[0]


def test_two_profiles_are_compared(tmp_path: Path) -> None:
    before, after = make_before_and_after()
    write_report(before, tmp_path / "before.json")
    write_report(after, tmp_path / "after.json")
    page = tmp_path / "page.html"
    main(["report", str(tmp_path / "after.json"), "--html", "--before", str(tmp_path / "before.json"), "-o", str(page)])
    assert "Only in the earlier profile: gone." in page.read_text(encoding="utf-8")


def test_an_earlier_profile_is_for_pages_only(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(saved), "--before", str(saved)]) == 2
    assert "add --html" in capsys.readouterr().err
