"""Behaviour of commands: exit codes, errors in one line, streams, kernels by name."""

import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from gpa_lsp import __version__
from gpa_lsp.cli import commands
from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.main import list_names, main
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.layout import Style
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.report.saved.store import write_report
from tests.conftest import ROOT
from tests.patience import LIMIT_S
from tests.render.advice_examples import make_advice_example
from tests.render.examples import make_example, make_smooth
from tests.report_builder import build_report
from tests.report_file.record_schema import read_schema


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "GPA_LSP_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def smooth(tmp_path: Path) -> str:
    path = tmp_path / "smooth.json"
    write_report(build_report(make_smooth()), path)
    return str(path)


@pytest.fixture
def example(tmp_path: Path) -> str:
    path = tmp_path / "example.json"
    write_report(make_example(), path)
    return str(path)


class FakeTerminal(io.StringIO):
    """A stream of a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_every_command_is_in_the_catalogue() -> None:
    names = list_names()
    assert set(load_catalogue(commands, "COMMAND", Command)) == set(names.values())
    assert [name for name in names if " " not in name] == [
        "advise", "check", "compare", "doctor", "emulate", "gate", "history", "mcp", "predict", "profile", "record", "report", "roofline", "serve",
    ]  # fmt: skip
    assert [name for name in names if " " in name] == [
        "doctor cache", "predict explore", "predict stalls", "predict trace", "report graph", "report sass", "roofline calibrate", "serve allow",
    ]  # fmt: skip


@pytest.mark.parametrize("command", list_names())
def test_help_of_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"usage: gpa-lsp {command}")
    assert [line for line in lines if len(line) > 80] == []


def test_texts_name_only_options_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Remedies quote commands to type: ``gpa-lsp COMMAND FILE --option``."""
    written = re.compile(r"gpa-lsp ([a-z]+(?: [a-z]+)??)((?: [A-Z]{2,}| --[a-z-]+)+)")
    sources = (ROOT / "gpa_lsp").rglob("*.py")
    named = {
        (command, option)
        for path in sources
        for command, words in written.findall(path.read_text(encoding="utf-8"))
        for option in words.split()
        if option.startswith("--")
    }
    assert ("predict trace", "--template") in named
    helps = {}
    for command in {command for command, _ in named}:
        assert main([*command.split(), "--help"]) == 0
        helps[command] = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert {(command, option) for command, option in named if option not in helps[command]} == set()


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gpa-lsp {__version__}\n"


@pytest.mark.parametrize("columns", [80, 120])
def test_a_report_takes_two_screens_per_kernel_and_says_what_it_leaves_out(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = replace(make_advice_example(), problems=())
    write_report(report, tmp_path / "example.json")
    monkeypatch.setenv("COLUMNS", str(columns))
    main(["report", "example.json"])
    brief = capsys.readouterr().out
    assert max(map(len, brief.splitlines())) <= columns
    chapters = brief.split("\n\n\n")[1:]
    assert len(chapters) == len(report.kernels)
    for chapter in chapters:
        assert len(chapter.splitlines()) <= 48
        assert "everything: --details, --format json, --html" in " ".join(chapter.split())
    assert "loops, launches" in " ".join(brief.split())
    main(["report", "example.json", "--details"])
    assert {"Loops", "Launches"} <= set(capsys.readouterr().out.splitlines())
    assert not {"Loops", "Launches"} & set(brief.splitlines())


@pytest.mark.parametrize("command", ["advise", "check", "report"])
def test_json_keeps_to_the_schema(command: str, example: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([command, example, "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(read_schema()).validate(document)
    assert ("findings" in document) is (command == "check")


@pytest.mark.parametrize("command", ["advise", "check", "report"])
def test_json_can_have_everything_in_place(
    command: str, example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--expand`` writes what reads without the tables, and is read back as the same."""
    texts = []
    for flags in ([], ["--expand"]):
        main([command, example, "--format", "json", *flags])
        texts.append(capsys.readouterr().out)
    (tmp_path / "expanded.json").write_text(texts[1])
    main([command, str(tmp_path / "expanded.json"), "--format", "json"])
    assert capsys.readouterr().out == texts[0]
    document = json.loads(texts[1])
    assert "tables" not in document
    row = next(row for row in document["kernels"][0]["instructions"] if row["inline"])
    assert row["inline"][0]["file"] == row["file"]
    assert isinstance(row["function"], str)


def test_check_json_can_be_read_back(example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", example, "--format", "json"])
    again = tmp_path / "again.json"
    again.write_text(capsys.readouterr().out)
    main(["check", example])
    expected = capsys.readouterr().out
    main(["check", str(again)])
    assert capsys.readouterr().out == expected


def test_limit_zero_shows_all_rows(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for limit in ("0", "1", "1000"):
        main(["report", example, "--details", "--limit", limit])
        shown[limit] = capsys.readouterr().out
    assert shown["0"] == shown["1000"]
    assert len(shown["1"]) < len(shown["0"])


@pytest.mark.parametrize(("form", "start"), [("text", "smooth\n"), ("json", '{\n"schema":"gpa-lsp/report/3"')])
def test_report_into_a_file(
    form: str, start: str, smooth: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    assert main(["report", smooth, "--format", form, "-o", str(target)]) == 0
    assert capsys.readouterr() == ("", "")
    assert target.read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["report", "-o", "v1.2.html"], "<!doctype html>"),
        (["report", "-o", "out.JSON"], '{\n"schema":"gpa-lsp/report/3"'),
        (["report", "-o", "out.html", "--format", "text"], "smooth\n"),
        (["report", "--format", "text", "-o", "out.html"], "smooth\n"),
        (["advise", "-o", "out.md"], "## `smooth`"),
        (["advise", "-o", "out.sarif"], "{"),
    ],
)
def test_the_end_of_its_name_says_what_a_file_holds(
    words: list[str], start: str, smooth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, smooth]) == 0
    assert Path(words[words.index("-o") + 1]).read_text(encoding="utf-8").startswith(start)


def test_a_page_that_a_command_has_not_is_refused(smooth: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", smooth, "-o", "page.html"]) == 2
    assert "-o: page.html would hold html; formats here: text, json, markdown" in capsys.readouterr().err


def test_mappings_show_the_files_here(smooth: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "smooth.cu").write_text("")
    main(["check", smooth, "--map", f"/build/src={tmp_path / 'elsewhere'}"])
    assert capsys.readouterr().out.startswith(f"{Path('elsewhere') / 'smooth.cu'}:8: info: ")


def test_paths_not_found_here_are_shown_as_compiled(smooth: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", smooth])
    assert capsys.readouterr().out.startswith("/build/src/smooth.cu:8: info: ")


def test_doctor_says_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--format", "json"]) == 0
    parts = {part["name"]: part for part in json.loads(capsys.readouterr().out)["components"]}
    assert parts["gpa-lsp"]["detail"] == __version__
    assert parts["numpy"]["state"] == "found"
    assert "NVIDIA's own licence" in parts["licence"]["detail"]
    assert "nvidia-cuda-nvdisasm" in parts["licence"]["detail"]
    assert "8.6" in parts["architecture tables"]["detail"]
    assert all(part["adds"] for part in parts.values())


def test_doctor_lists_every_package_we_install_and_fits_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for name, texts in project["optional-dependencies"].items() if name != "dev" for text in texts]
    asked_for = {re.split(r"[^\w.-]", text)[0] for text in (*project["dependencies"], *extras)}
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["doctor"]) == 0
    table = capsys.readouterr().out.partition("Packages, and what they are used for\n")[2].partition("\n\n")[0]
    listed = {line.split()[0]: line for line in table.splitlines()}
    # programs and headers of NVIDIA are listed as what they are used as; cuda-bindings is what we use of cuda-python
    nvidia = {name for name in asked_for if name.startswith("nvidia-")}
    assert set(listed) - {"nvidia-cuda-nvrtc"} == asked_for - nvidia - {"cuda-python"} | {"cuda-bindings"}
    assert [line for line in listed.values() if "…" in line or len(line) > 80] == []


def test_a_picture_without_vl_convert_names_the_extra_before_any_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for command in (
        ["roofline", "no-such-report", "-o", "a.svg"],
        ["predict", "explore", "no-such-source", "-o", "a.png"],
    ):
        assert main(command) == 2
        shown = " ".join(capsys.readouterr().err.split())
        assert "pip install 'gpa-lsp[charts]', or write .html" in shown


def test_doctor_says_what_predicting_takes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("gpa_lsp.cli.installation.HOST_COMPILERS", ("no-such-compiler",))
    assert main(["doctor", "--format", "json"]) == 0
    parts = {part["name"]: part for part in json.loads(capsys.readouterr().out)["components"]}
    assert {"nvcc", "pyarrow", "distributed", "nvidia-cuda-nvrtc"} <= set(parts)
    host = parts["no-such-compiler"]
    assert (host["state"], host["adds"]) == ("missing", "compiling sources with host code, by nvcc")


def test_doctor_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPA_LSP_NVDISASM", str(tmp_path / "none"))
    broken = tmp_path / "cuobjdump"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("GPA_LSP_CUOBJDUMP", str(broken))
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    lack = "  nvdisasm: instruction texts, def-use and control flow. To add it: pip install nvidia-cuda-nvdisasm\n"
    assert lack in shown
    assert "broken" in next(line for line in shown.splitlines() if line.startswith("  cuobjdump"))


@pytest.mark.parametrize(("name", "code"), [("jinja2.ext", 2), ("gpa_lsp.document.lost", 70)])
def test_a_library_that_is_not_there_is_named(
    name: str, code: int, smooth: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("gpa_lsp.document.findings.find_findings", fail)
    assert main(["check", smooth]) == code
    said = capsys.readouterr().err
    assert ("jinja2 is not installed: this command needs it; pip install gpa-lsp brings it" in said) == (code == 2)


def test_an_unexpected_error_is_one_line(
    smooth: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpa_lsp.document.findings.find_findings", lambda *_: 1 / 0)
    assert main(["check", smooth]) == 70
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "ZeroDivisionError: division by zero" in printed.err
    assert "GPA_LSP_DEBUG=1" in printed.err
    monkeypatch.setenv("GPA_LSP_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["check", smooth])


def test_interrupted(smooth: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpa_lsp.document.findings.find_findings", interrupt)
    assert main(["check", smooth]) == 130
    assert capsys.readouterr() == ("", "")


# Terminals.


@pytest.mark.parametrize(
    ("environment", "choice", "expected"),
    [
        ({}, "auto", True),
        ({"NO_COLOR": "1"}, "auto", False),
        ({"NO_COLOR": ""}, "auto", True),
        ({"NO_COLOR": "1"}, "always", True),
        ({"TERM": "dumb"}, "auto", False),
        ({}, "never", False),
    ],
)
def test_colour_on_a_screen(
    environment: dict[str, str], choice: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal(FakeTerminal(), FakeTerminal(), choice)
    terminal.write_lines([(("hot", Style.HOT),)])
    assert terminal.out.getvalue() == ("\x1b[1;31mhot\x1b[0m\n" if expected else "hot\n")  # type: ignore[attr-defined]


def test_no_colour_into_a_file_unless_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Terminal(io.StringIO(), io.StringIO()).has_colour
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert Terminal(io.StringIO(), io.StringIO()).has_colour


def test_width_is_the_screens_or_unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Terminal(io.StringIO(), io.StringIO()).width is None
    monkeypatch.setenv("COLUMNS", "77")
    assert Terminal(FakeTerminal(), FakeTerminal()).width == 77
    monkeypatch.setenv("COLUMNS", "3")
    assert Terminal(FakeTerminal(), FakeTerminal()).width == 20


def test_findings_are_wrapped_on_a_screen_and_nowhere_else(smooth: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for stream, lines in ((io.StringIO(), 8), (FakeTerminal(), 23)):
        monkeypatch.setattr(sys, "stdout", stream)
        main(["check", smooth, "--color", "never"])
        shown = stream.getvalue().splitlines()
        assert len(shown) == lines
        assert sum(": info: " in line for line in shown) == 4
    assert max(map(len, shown)) <= 60


def test_without_standard_streams(smooth: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["check", smooth]) == 0
    assert main(["check", smooth, "--fail-on", "finding"]) == 1


def test_terminals_that_know_only_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Terminal(stream, io.StringIO()).write_lines([(("█▏ 5 µs ± 1 · 2×3 …", Style.PLAIN),), (("日", Style.PLAIN),)])
    stream.flush()
    assert raw.getvalue().decode().splitlines() == ["#- 5 us +- 1 * 2x3 ...", "\\u65e5"]


# Through a real process.


def run(*arguments: str, program: tuple[str, str] = ("-m", "gpa_lsp")) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=LIMIT_S)


def test_process(smooth: str) -> None:
    done = run("check", smooth, "--fail-on", "finding")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "/build/src/smooth.cu:8: info: 81 % (±0.4) of the samples of smooth; of these 81 % long_scoreboard; "
    )
    assert done.stderr == ""


def test_process_with_a_missing_file(tmp_path: Path) -> None:
    done = run("check", str(tmp_path / "none.ncu-rep"))
    assert done.returncode == 2
    assert "none.ncu-rep" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes there do not break this way")
def test_a_reader_who_leaves_early(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    write_report(build_report(*[make_smooth()] * 40), path)
    command = f"{sys.executable} -m gpa_lsp report {path} --format json; echo code $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | head -c 100 >/dev/null"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.stderr == "code 0\n"


def test_starting_loads_nothing_heavy(smooth: str) -> None:
    script = (
        "import sys; from gpa_lsp.cli.main import main; main(sys.argv[1:]); "
        "print(sorted({name.split('.')[0] for name in sys.modules} "
        "& {'rich', 'networkx', 'pygls', 'lsprotocol', 'google', 'elftools', 'backports', 'vl_convert', 'typer', 'pydantic'}), file=sys.stderr)"
    )
    assert run("check", smooth, program=("-c", script)).stderr == "[]\n"


@pytest.mark.parametrize("colour", ["never", "always"])
def test_names_from_profiles_cannot_steer_the_terminal(colour: str) -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, stream, colour)
    hostile = "k\x1b]0;owned\x07\r\x9b2J\u202eu\tü"
    terminal.write_lines([((hostile, Style.PLAIN),)])
    terminal.complain(hostile)
    assert stream.getvalue() == 2 * "k\\x1b]0;owned\\x07\\r\\x9b2J\\u202eu\\tü\n"
