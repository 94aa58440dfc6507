"""Requirements of both marketplaces on an extension."""

import json
import re
import struct
import tomllib
from pathlib import Path

from tests.conftest import ROOT

FOLDER = ROOT / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CATEGORIES = {
    *("Programming Languages", "Snippets", "Linters", "Themes", "Debuggers", "Formatters", "Keymaps", "SCM Providers", "Other"),
    *("Extension Packs", "Language Packs", "Data Science", "Machine Learning", "Visualization", "Notebooks", "Education", "Testing"),
}  # fmt: skip
"""Those the Marketplace has."""


def read_size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG, in pixels."""
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", head[16:])
    return width, height


def test_it_may_be_published_and_says_where_it_comes_from() -> None:
    assert "private" not in PACKAGE
    home = PROJECT["urls"]["Repository"]
    assert PACKAGE["repository"] == {"type": "git", "url": f"{home}.git", "directory": "editors/vscode"}
    assert PACKAGE["bugs"] == {"url": PROJECT["urls"]["Issues"]}
    assert PACKAGE["homepage"].startswith(f"{home}/")
    assert (ROOT / PACKAGE["homepage"].partition("/blob/main/")[2]).is_file()


def test_it_is_not_published_to_npm_by_accident() -> None:
    assert "exit 1" in PACKAGE["scripts"]["prepublishOnly"]


def test_its_licence_is_named_and_comes_along() -> None:
    assert PACKAGE["license"] == PROJECT["license"]
    assert (FOLDER / "LICENSE").is_file()
    assert "!LICENSE" in (FOLDER / ".vscodeignore").read_text().split()


def test_what_the_marketplace_lists_it_under() -> None:
    assert set(PACKAGE["categories"]) <= CATEGORIES
    assert 5 <= len(PACKAGE["keywords"]) <= 30
    assert len(PACKAGE["description"]) <= 200
    assert re.fullmatch(r"#[0-9a-f]{6}", PACKAGE["galleryBanner"]["color"])
    assert PACKAGE["galleryBanner"]["theme"] in ("dark", "light")


def test_its_icon_and_pictures_are_there_and_large_enough() -> None:
    assert min(read_size(FOLDER / PACKAGE["icon"])) >= 128
    shown = re.findall(r"!\[([^\]]+)\]\(([^)]+\.png)\)", README)
    assert len(shown) >= 2
    for words, path in shown:
        assert len(words) > 20, "for those who cannot see it"
        assert read_size(FOLDER / path)[0] >= 800


def test_every_step_of_the_walkthrough_has_its_medium_and_its_commands() -> None:
    commands = {command["command"] for command in PACKAGE["contributes"]["commands"]}
    (walkthrough,) = PACKAGE["contributes"]["walkthroughs"]
    for step in walkthrough["steps"]:
        media = step["media"]
        path = FOLDER / (media.get("image") or media["markdown"])
        assert path.is_file()
        text = step["description"] + (path.read_text(encoding="utf-8") if path.suffix == ".md" else "")
        assert set(re.findall(r"command:(gpa\.\w+)", text)) <= commands
        events = [
            event.removeprefix("onCommand:") for event in step["completionEvents"] if event.startswith("onCommand:")
        ]
        assert {event for event in events if event.startswith("gpa.")} <= commands
        if "image" in media:
            assert len(media["altText"]) > 20
