"""What every command prints for the example report, byte for byte, in ``tests/golden/render/<command and flags>``."""

from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.report.saved.store import write_report
from tests.golden_files import check_golden
from tests.render.advice_examples import make_advice_example
from tests.render.examples import SOURCE, make_example, make_smooth
from tests.report_builder import build_report

FILES = {
    "example.json": make_example,
    "smooth.json": lambda: build_report(make_smooth()),
    "nothing.json": build_report,
    "advice.json": make_advice_example,
}

SUFFIXES = {"json": ".json", "sarif": ".json", "markdown": ".md"}

COMMANDS = [
    "advise advice.json",
    "advise advice.json --details",
    "advise advice.json --details --format markdown",
    "advise advice.json --details --limit 1 --top 2",
    "advise advice.json --details --limit 1 --top 2 --format markdown",
    "advise advice.json --details --kernel smooth --color always",
    "COLUMNS=80 advise advice.json --details",
    "COLUMNS=160 advise advice.json --details",
    "advise advice.json --format github",
    "advise advice.json --format markdown",
    "advise advice.json --format sarif",
    "advise advice.json --kernel smooth --color always",
    "advise advice.json --kernel smooth --format json",
    "advise advice.json --top 2",
    "advise advice.json --top 2 --format markdown",
    "advise nothing.json",
    "advise nothing.json --format markdown",
    "COLUMNS=80 advise advice.json",
    "COLUMNS=160 advise advice.json",
    "check advice.json",
    "report advice.json --details --kernel smooth --top 3",
    "check example.json",
    "check example.json --min-share 1.5",
    "check example.json --min-share 90",
    "check nothing.json",
    "check smooth.json --color always",
    "check example.json --format github",
    "check example.json --format sarif",
    "check smooth.json --format json",
    "report example.json --details",
    "report example.json --details --top 2",
    "report nothing.json --details",
    "report smooth.json --details --color always",
    "report smooth.json --format json --indent 1 --no-sources",
    "report advice.json",
    "report example.json",
    "report nothing.json",
    "COLUMNS=80 report advice.json",
    "COLUMNS=120 report advice.json --kernel smooth --limit 2",
    "report sass example.json",
    "report sass smooth.json --color always",
    "COLUMNS=60 report smooth.json --details",
    "COLUMNS=60 report sass smooth.json",
    "COLUMNS=100 report sass smooth.json",
    "COLUMNS=140 report smooth.json --details",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_printed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, make in FILES.items():
        write_report(make(), tmp_path / name)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "smooth.cu").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    arguments = command.split()
    if arguments[0].startswith("COLUMNS="):
        monkeypatch.setenv("COLUMNS", arguments.pop(0).removeprefix("COLUMNS="))
    monkeypatch.setenv("TERM", "xterm-256color")
    main(arguments)
    printed = capsys.readouterr()
    assert printed.err == ""
    suffix = next((suffix for form, suffix in SUFFIXES.items() if f"--format {form}" in command), ".txt")
    name = command.replace(".json", "").replace(" --", "_").replace(" ", "-").replace("=", "-") + suffix
    check_golden(f"render/{name}", printed.out.replace(tmp_path.as_uri(), "file:///folder"))
