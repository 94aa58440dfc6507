"""``gpa-lsp compare``: what is paired with what, and exit codes."""

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.cli.main import main
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.saved.store import write_report
from tests.cli.test_commands import FakeTerminal
from tests.report.test_compare import AFTER, BEFORE
from tests.report_builder import build_kernel, build_report


def timed(name: str, duration_ns: float, listing: str = BEFORE) -> KernelReport:
    kernel = build_kernel(listing)
    launch = replace(kernel.launches[0], duration_ns=duration_ns, elapsed_cycles=None)
    return replace(kernel, name=name, mangled_name=name, launches=(launch,), duration_ns=duration_ns)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    write_report(build_report(timed("conv_base", 8e6)), Path("before.json"))
    write_report(build_report(timed("conv_tiled", 4e6, AFTER)), Path("after.json"))
    write_report(build_report(timed("gemm_naive", 8e6), timed("gemm_tiled", 2e6, AFTER)), Path("both.json"))


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 2), ("", 2)])
def test_on_a_terminal_it_is_asked(
    answer: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpa_lsp.cli.terminal.Terminal.is_interactive", True)
    monkeypatch.setattr(sys, "stdin", FakeTerminal(answer))
    assert main(["compare", "before.json", "after.json"]) == status
    said = capsys.readouterr()
    assert said.err.startswith("Compare conv_base with conv_tiled (the same number of threads")
    assert ("conv_base → conv_tiled" in said.out) == (status == 0)


def test_json_asks_nobody(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("gpa_lsp.cli.terminal.Terminal.is_interactive", True)
    monkeypatch.setattr(sys, "stdin", FakeTerminal("y\n"))
    assert main(["compare", "before.json", "after.json", "--format", "json"]) == 2
    said = capsys.readouterr()
    assert said.err == ""
    assert [pair["before"] for pair in json.loads(said.out)["likely_pairs"]] == ["conv_base"]
