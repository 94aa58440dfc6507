"""Help: commands by purpose, examples that the parser takes and that run, and one meaning for each option."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.cli import commands
from gpa_lsp.cli import main as entry
from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.main import main
from gpa_lsp.foundation.catalogue import load_member
from gpa_lsp.report.saved.store import write_report
from tests.render.advice_examples import make_advice_example

COMMANDS = {name: load_member(commands, member, "COMMAND", Command) for name, member in entry.list_names().items()}
EXAMPLES = [words for command in COMMANDS.values() for words, _ in command.examples]
# Examples that need nothing but the reports and the folder of the test.
RUNNABLE = [
    words
    for words in EXAMPLES
    if words.split()[0] in ("advise", "compare", "history", "report", "roofline")
    or words.startswith(("doctor cache", "serve allow --list"))
    if not words.startswith(("roofline calibrate", "report graph"))
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


def test_commands_are_listed_by_purpose_and_the_first_step_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("start here:\n  gpa-lsp advise REPORT.ncu-rep") < printed.index(f"{Purpose.READ.value}:")
    assert max(map(len, printed.splitlines())) <= 80
    for name, command in COMMANDS.items():
        assert command.purpose is not Purpose.OTHER, name
        if " " in name:
            assert name in " ".join(printed.split())
            continue
        group = printed.partition(f"\n{command.purpose.value}:\n")[2].partition("\n\n")[0]
        assert re.search(rf"^  {name}  ", group, re.MULTILINE), name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_two_examples_and_a_limit_is_a_number_of_what_is_shown(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    for told in re.findall(r"^  --limit (.+?)(?=^  -|\Z)", printed, re.MULTILINE | re.DOTALL):
        assert re.search(r"\bat\s+most\s+N\s+(rows|kernels|runs|pieces)\b", told), told
    printed = printed.partition("\nparts:\n")[0]
    examples = re.findall(r"^  gpa-lsp (.+)$", printed.partition("\nexamples:\n")[2], re.MULTILINE)
    assert len(examples) == 2
    assert examples == [words for words, _ in COMMANDS[name].examples]


def test_the_parser_takes_each_example() -> None:
    parser = entry.build_parser(COMMANDS)
    for words in EXAMPLES:
        given = entry.join_words(shlex.split(words))
        assert parser.parse_args(given).command == given[0], words


@pytest.mark.parametrize("words", RUNNABLE)
def test_examples_run(words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = replace(make_advice_example(), problems=())
    write_report(report, folder / "example.json")
    given = shlex.split(words)
    for position, word in enumerate(
        given
    ):  # a measured file is not bundled; a saved report is read by the same commands
        if word.endswith((".ncu-rep", ".json")):
            shutil.copy(folder / "example.json", folder / f"{Path(word).stem}.json")
            given[position] = f"{Path(word).stem}.json"
        elif word == "matmul":
            given[position] = report.kernels[0].name
    assert main(given) == 0
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert printed.out or (folder / given[-1]).stat().st_size


@pytest.mark.parametrize("command", ["check", "gate", "predict", "predict explore", "predict stalls", "predict trace"])
def test_architectures_are_named_in_any_usual_way(command: str) -> None:
    needed = {"gate": ["after.cu", "--base", "before.cu"]}.get(command, ["matmul.cu"])
    parser = entry.build_parser(COMMANDS)
    for written in ("sm_90", "sm_90a", "compute_90", "9.0", "90"):
        assert parser.parse_args([command, *needed, "--arch", written]).arch == (9, 0)


@pytest.mark.parametrize("written", ["sm_", "sm_9", "9", "9.", ".0", "90x", "sm90", "9.0.1", "x", "９０", ""])
def test_other_texts_name_no_architecture(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "matmul.cu", "--arch", written]) == 2
    assert "is not an architecture such as sm_86" in capsys.readouterr().err


def test_an_unknown_option_is_refused_with_the_usage_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", "a.ncu-rep", "--format", "html"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("usage: gpa-lsp roofline [-h]")
    assert told.endswith("gpa-lsp roofline: error: unrecognized arguments: --format html\n")
