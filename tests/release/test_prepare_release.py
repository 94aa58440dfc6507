"""Checks of the release workflow before it builds."""

import importlib.util
import json
import re
import shutil
from pathlib import Path

from gpa_lsp import __version__
from tests.conftest import ROOT

SCRIPT = ROOT / ".github" / "prepare_release.py"
specification = importlib.util.spec_from_file_location("prepare_release", SCRIPT)
assert specification is not None and specification.loader is not None
prepare_release = importlib.util.module_from_spec(specification)
specification.loader.exec_module(prepare_release)

NAMING = (
    "pyproject.toml",
    "gpa_lsp/__init__.py",
    "editors/vscode/package.json",
    "CHANGELOG.md",
    "editors/vscode/CHANGELOG.md",
)
REPOSITORY = "https://host.example/owner/name"


def test_versions_and_changelogs_agree() -> None:
    assert prepare_release.find_disagreements(f"v{__version__}") == []


def test_every_place_that_names_another_version_is_said(tmp_path: Path) -> None:
    for name in NAMING:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    found = prepare_release.find_disagreements("v999.0.0", tmp_path)
    assert [next(name for name in NAMING if sentence.startswith(name)) for sentence in found] == list(NAMING)
    package = tmp_path / "editors/vscode/package.json"
    package.write_text(json.dumps({**json.loads(package.read_text()), "version": "0.0.1"}))
    assert len(prepare_release.find_disagreements(f"v{__version__}", tmp_path)) == 1


def test_links_of_the_readme_lead_into_the_repository() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = re.findall(r"\]\((?!https?:|#)([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    assert len(relative) > 10
    absolute = prepare_release.make_absolute(text, REPOSITORY, "v1")
    assert re.findall(r"\]\((?!https?:|#)([^)]+)\)|(?:src|srcset)=\"(?!https:)([^\"]+)\"", absolute) == []
    for target in map("".join, relative):
        kind = "raw" if target.endswith(".png") else "blob"
        assert f"{REPOSITORY}/{kind}/v1/{target}" in absolute


def test_nothing_but_links_is_changed() -> None:
    text = "`[[launch]]` a [b](https://c) [d [e] f](g.md#h) ![i](j k) `x[i](y)`"
    changed = prepare_release.make_absolute(text, REPOSITORY, "v1")
    assert changed.startswith(
        "`[[launch]]` a [b](https://c) [d [e] f](https://host.example/owner/name/blob/v1/g.md#h) ![i](j k) "
    )


def test_every_file_names_the_repository_that_it_is_in(tmp_path: Path) -> None:
    for name in prepare_release.ADDRESSED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    home = prepare_release.find_address(tmp_path)
    assert prepare_release.find_other_homes(home, tmp_path) == []
    (sentence,) = prepare_release.find_other_homes(REPOSITORY, tmp_path)
    assert f"address {REPOSITORY}" in sentence
    prepare_release.move_home(REPOSITORY, tmp_path)
    assert prepare_release.find_other_homes(REPOSITORY, tmp_path) == []
    assert home not in (tmp_path / "editors/vscode/package.json").read_text()
    assert home not in (tmp_path / "pyproject.toml").read_text()
