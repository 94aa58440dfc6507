"""The first page says what the program does and prints, and stays a first page."""

import re

import pytest

from gpa_lsp.cli.main import list_names, main
from tests.conftest import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURES = ROOT / ".github" / "pictures"


def test_it_is_short_and_its_pictures_are_small() -> None:
    assert len(TEXT.encode()) <= 8 * 1024
    assert {path.name: path.stat().st_size for path in PICTURES.iterdir() if path.stat().st_size > 200_000} == {}


def test_every_picture_is_shown_and_described() -> None:
    shown = re.findall(r"\.github/pictures/([\w-]+\.png)", TEXT)
    assert sorted(shown) == sorted(path.name for path in PICTURES.iterdir())
    pictures = re.findall(r"<img [^>]*>", TEXT)
    assert len(pictures) == len(shown) / 2  # one for dark ground, one for light
    assert all(re.search(r' alt="[^"]{60,}"', picture) for picture in pictures)


def test_it_lists_the_commands_there_are() -> None:
    table = TEXT.partition("\n## Commands\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([\w ]+)`", table, re.MULTILINE)) == set(list_names())


def test_it_shows_what_its_first_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first lines of it; the command's words are taken from the page, too."""
    command = re.search(r"```sh\n.* \.venv/bin/gpa-lsp (.+)\n```\n\n```text\n(.+?)```", TEXT, re.DOTALL)
    assert command is not None
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(command[1].split()) == 0
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for line in command[2].splitlines():
        assert line.strip() in printed
