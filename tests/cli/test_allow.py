"""``gpa-lsp serve allow``: confirming, listing, taking back."""

from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.profile.collect.allowance import Allowance

PROFILE = ("ncu", "--export", "${output}", "./app")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_a_command_is_allowed_in_the_current_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "allow", "--", *PROFILE]) == 0
    assert capsys.readouterr().err == f"gpa-lsp: allowed in {folder}: ncu --export '${{output}}' ./app\n"
    assert Allowance().is_allowed(folder, None, PROFILE)
    assert not Allowance().is_allowed(folder.parent, None, PROFILE)


def test_a_line_is_the_command_it_splits_into(folder: Path) -> None:
    assert main(["serve", "allow", "--build", "make -j4", "--", "ncu --export ${output} ./app"]) == 0
    assert Allowance().is_allowed(folder, ("make", "-j4"), PROFILE)


def test_another_workspace(folder: Path) -> None:
    (folder / "other").mkdir()
    assert main(["serve", "allow", "--workspace", "other", "--", *PROFILE]) == 0
    assert Allowance().is_allowed(folder / "other", None, PROFILE)


def test_listing_and_taking_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "allow", "--list"]) == 0
    assert capsys.readouterr().out.startswith("nothing is allowed (")
    main(["serve", "allow", "--", *PROFILE])
    main(["serve", "allow", "--build", "make", "--", "./measure"])
    capsys.readouterr()
    assert main(["serve", "allow", "--list"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split(maxsplit=2)[2] == "~/work  ncu --export '${output}' ./app"
    assert second.split(maxsplit=2)[2] == "~/work  make, then ./measure"
    assert main(["serve", "allow", "--forget", "1"]) == 0
    assert capsys.readouterr().err == "gpa-lsp: no longer allowed in ~/work: ncu --export '${output}' ./app\n"
    assert not Allowance().is_allowed(folder, None, PROFILE)
    assert Allowance().is_allowed(folder, ("make",), ("./measure",))


def test_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "allow"]) == 2
    assert "no command to allow" in capsys.readouterr().err
    assert main(["serve", "allow", "--workspace", "nowhere", "--", "x"]) == 2
    assert "nowhere: is not a folder" in capsys.readouterr().err
    assert main(["serve", "allow", "--forget", "1"]) == 2
    assert main(["serve", "allow", "--forget", "x"]) == 2
    assert main(["serve", "allow", "--", "a 'b"]) == 2
    assert "a 'b is not a command: a quotation mark is not closed" in capsys.readouterr().err
