"""Examples that the pages tell users to copy: they are well formed, start our server, and name settings that exist."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.editors.documented import EDITORS, read_blocks
from tests.release.try_wheel import MESSAGES, frame, unframe

SETTINGS = set(json.loads((EDITORS / "vscode" / "settings" / "server.json").read_text(encoding="utf-8")))
TEMPLATE = EDITORS / "jetbrains" / "gpa-lsp"


def read_template(name: str) -> Any:
    return json.loads((TEMPLATE / name).read_text(encoding="utf-8"))


def list_commands() -> dict[str, list[str]]:
    """Page → the words it starts the server with."""
    kate, _ = (json.loads(block) for block in read_blocks("kate.md", "json"))
    (sublime,) = (json.loads(block) for block in read_blocks("sublime.md", "json"))
    (rust,) = read_blocks("zed.md", "rust")
    assert 'worktree.which("gpa-lsp")' in rust and 'args: vec!["serve".into()]' in rust
    return {
        "kate": kate["servers"]["gpa-lsp"]["command"],
        "sublime": sublime["clients"]["gpa-lsp"]["command"],
        "jetbrains": read_template("template.json")["programArgs"]["default"].split(" "),
        "zed": ["gpa-lsp", "serve"],
    }


def list_settings() -> dict[str, Mapping[str, Any]]:
    """Page → the settings of the server it names."""
    kate, _ = (json.loads(block) for block in read_blocks("kate.md", "json"))
    (sublime,) = (json.loads(block) for block in read_blocks("sublime.md", "json"))
    (zed,) = (json.loads(block) for block in read_blocks("zed.md", "json"))
    return {
        "kate": kate["servers"]["gpa-lsp"]["settings"],
        "sublime": sublime["clients"]["gpa-lsp"]["settings"],
        "jetbrains": read_template("settings.json"),
        "zed": zed["lsp"]["gpa-lsp"]["settings"],
    }


def flatten(value: Any, name: str = "") -> Iterator[str]:
    """Dotted names, whether they are written with dots or as objects in objects."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{name}.{key}" if name else key)
    else:
        yield name


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``gpa-lsp`` as installing it makes it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, function = project["scripts"]["gpa-lsp"].split(":")
    path = tmp_path_factory.mktemp("bin") / "gpa-lsp.py"
    path.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("page", list(list_commands()))
def test_the_command_of_a_page_starts_our_server(page: str, program: Path, tmp_path: Path) -> None:
    name, *arguments = list_commands()[page]
    assert name == "gpa-lsp"
    done = subprocess.run(
        [sys.executable, program, *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        input=b"".join(frame({"jsonrpc": "2.0", **message}) for message in MESSAGES),
        capture_output=True,
        check=True,
    )
    answers = {message.get("id"): message for message in unframe(done.stdout)}
    assert "hoverProvider" in answers[1]["result"]["capabilities"]
    assert answers[1]["result"]["serverInfo"]["name"] == "gpa-lsp"


@pytest.mark.parametrize("page", list(list_settings()))
def test_the_settings_a_page_names_exist(page: str) -> None:
    named = set(flatten(list_settings()[page]))
    assert named and named <= SETTINGS


def test_the_template_for_jetbrains_has_what_its_importer_reads() -> None:
    template = read_template("template.json")
    assert {"id", "name", "programArgs", "fileTypeMappings"} == set(template)
    for mapping in template["fileTypeMappings"]:
        assert mapping["languageId"] and all(pattern.startswith("*.") for pattern in mapping["fileType"]["patterns"])
    assert "Import from custom template…" in (EDITORS / "jetbrains.md").read_text(encoding="utf-8")


def test_the_extension_for_zed_is_whole() -> None:
    extension, cargo = (tomllib.loads(block) for block in read_blocks("zed.md", "toml"))
    assert {"id", "name", "version", "schema_version", "authors", "repository"} <= set(extension)
    (server,) = extension["language_servers"]
    (settings,) = (json.loads(block) for block in read_blocks("zed.md", "json"))
    languages = extension["language_servers"][server]["languages"]
    assert set(settings["languages"]) == set(languages)
    assert all(server in settings["languages"][language]["language_servers"] for language in languages)
    assert cargo["lib"]["crate-type"] == ["cdylib"]


def test_a_page_that_was_not_tried_says_so() -> None:
    tried = {"kate", "helix", "emacs"}
    pages = {path.stem for path in EDITORS.glob("*.md")} - {"README", "PROTOCOL", "jupyter"}
    for page in pages - tried:
        text = (EDITORS / f"{page}.md").read_text(encoding="utf-8")
        assert "not run" in text or "not compiled or run" in text, page
    assert all((ROOT / "tests" / "editors" / f"test_{page}.py").exists() for page in tried)


def test_there_are_few_doors() -> None:
    """Each setting and each command has a reason to exist; what a person rarely wants is behind the status bar, or an option of the command line."""
    manifest = json.loads((EDITORS / "vscode" / "package.json").read_text(encoding="utf-8"))["contributes"]
    assert len(manifest["commands"]) <= 22
    assert sum(len(section["properties"]) for section in manifest["configuration"]) <= 25
    words = (EDITORS / "neovim" / "lua" / "gpa_lsp" / "commands.lua").read_text(encoding="utf-8")
    assert words.count("\n    run = function") <= 22
