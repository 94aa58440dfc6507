"""The editors' pages say what the code says."""

import json
import re
from pathlib import Path

import gpa_lsp.lsp.commands
from gpa_lsp.lsp.commands import Command
from gpa_lsp.lsp.settings_table import draw_settings_table
from gpa_lsp.registry import load_catalogue

EDITORS = Path(__file__).resolve().parent.parent.parent / "editors"


def test_the_table_of_settings_is_the_list_of_options() -> None:
    page = (EDITORS / "README.md").read_text()
    table = page.partition("gpa_lsp.lsp.settings_table -->\n")[2].partition("<!-- end of settings")[0]
    assert table == draw_settings_table()


def test_the_protocol_page_lists_the_commands_there_are() -> None:
    page = (EDITORS / "PROTOCOL.md").read_text()
    table = page.partition("## Commands")[2]
    listed = {
        name
        for row in re.findall(r"^\| (`gpaLsp[^|]*)\|", table, re.MULTILINE)
        for name in re.findall(r"gpaLsp\.\w+", row)
    }
    assert listed == {command.name for command in load_catalogue(gpa_lsp.lsp.commands, "COMMAND", Command).values()}


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in EDITORS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_commands_on_the_page_are_json() -> None:
    page = (EDITORS / "README.md").read_text()
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    json.loads("{" + blocks[0] + "}")
    decoder = json.JSONDecoder()
    rest = blocks[1].strip()
    while rest:
        command, end = decoder.raw_decode(rest)
        assert all(isinstance(word, str) for word in command)
        rest = rest[end:].strip()
