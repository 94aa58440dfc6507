"""The editors' pages say what the code says."""

import json
import re
import subprocess
import sys
from pathlib import Path

from gpa_lsp.editor.protocol.commands import load_commands

EDITORS = Path(__file__).resolve().parent.parent.parent / "editors"


def test_settings_are_those_of_the_server() -> None:
    """Settings agree in the page, in Vim's help, and in the table that VS Code's ``package.json`` is made from."""
    writer = [sys.executable, EDITORS / "write_settings.py", "--check"]
    done = subprocess.run(writer, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_vs_code_has_the_settings_of_its_table() -> None:
    sections = json.loads((EDITORS / "vscode" / "package.json").read_text())["contributes"]["configuration"]
    found = {name: said for section in sections for name, said in section["properties"].items()}
    table = json.loads((EDITORS / "vscode" / "settings" / "server.json").read_text())
    for name, said in table.items():
        wanted = {key: value for key, value in said.items() if key != "restricted"}
        assert {key: found[name].get(key) for key in wanted} == wanted


def test_the_protocol_page_lists_the_commands_there_are() -> None:
    page = (EDITORS / "PROTOCOL.md").read_text()
    table = page.partition("## Commands")[2]
    listed = {
        name
        for row in re.findall(r"^\| (`gpaLsp[^|]*)\|", table, re.MULTILINE)
        for name in re.findall(r"gpaLsp\.\w+", row)
    }
    assert listed == set(load_commands())


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in EDITORS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_commands_on_the_page_are_json() -> None:
    page = (EDITORS / "README.md").read_text()
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    *settings, commands = blocks
    assert len(settings) == 2
    for block in settings:
        json.loads("{" + block + "}")
    decoder = json.JSONDecoder()
    rest = commands.strip()
    while rest:
        command, end = decoder.raw_decode(rest)
        assert all(isinstance(word, str) for word in command)
        rest = rest[end:].strip()
