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


@pytest.mark.parametrize("paths", [["both.json"], ["both.json", "both.json"]])
def test_two_kernels_of_one_report(paths: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *paths, "--pair", "naive=tiled"]) == 0
    assert capsys.readouterr().out.startswith("gemm_naive → gemm_tiled  8.00 ms → 2.00 ms  4.00×  faster")


def test_several_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = ["--pair", "naive=tiled", "--pair", "tiled=naive"]
    assert main(["compare", "both.json", *pairs, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["before"], row["after"], row["verdict"]) for row in document["kernels"]] == [
        ("gemm_naive", "gemm_tiled", "faster"),
        ("gemm_tiled", "gemm_naive", "slower"),
    ]


def test_a_renamed_kernel_is_named_and_the_exit_status_says_that_nothing_was_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", "before.json", "after.json"]) == 2
    printed = capsys.readouterr().out
    assert "could be compared: conv_base with conv_tiled" in printed
    assert "no kernel is in both reports" in printed


def test_yes_compares_what_looks_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before.json", "after.json", "--yes"]) == 0
    assert capsys.readouterr().out.startswith("conv_base → conv_tiled  8.00 ms → 4.00 ms  2.00×  faster")


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["both.json"], "one report alone cannot be compared"),
        (["both.json", "--pair", "naive=fast"], "no kernel after is named 'fast'"),
        (["both.json", "--pair", "gemm=tiled"], "several kernels before are named 'gemm'"),
        (["both.json", "--pair", "naive"], "'naive' is not of the form OLD=NEW"),
    ],
)
def test_what_cannot_be_compared(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(["compare", *arguments])
    except SystemExit as stopped:  # as the parser of arguments stops
        status = int(stopped.code or 0)
    assert status == 2
    assert message in capsys.readouterr().err


def test_a_slower_kernel_fails_where_that_is_asked_for() -> None:
    assert main(["compare", "both.json", "--pair", "tiled=naive", "--fail-on-slower"]) == 1
    assert main(["compare", "both.json", "--pair", "naive=tiled", "--fail-on-slower"]) == 0
