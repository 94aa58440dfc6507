"""Every command that shows a report, in every format it has, fed with a report whose every text is hostile."""

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given

from gpa_lsp.cli import commands
from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.main import list_names, main
from gpa_lsp.foundation.catalogue import load_member
from gpa_lsp.report.saved.store import write_report
from tests.conftest import examples
from tests.hostile_names import (
    EVERYTHING,
    EVIL,
    count_elements,
    count_tokens,
    find_autolinks,
    find_unseen,
    list_texts,
    spoil,
)
from tests.render.html_report.page_examples import make_before_and_after, make_page_example

_SHORTENED = re.compile(r"[^\w /\\<>(){}:.]")
"""All but what names are shortened by: short names have their whole ones on a line of their own."""

WITHOUT_REPORTS = {
    "doctor",
    "doctor cache",
    "emulate",
    "history",
    "mcp",
    "predict",
    "predict explore",
    "predict stalls",
    "predict trace",
    "profile",
    "record",
    "roofline calibrate",
    "serve",
    "serve allow",
}
"""Commands that show no report."""

TO_FILES = {
    "advise": [("-o", "out")],
    "report": [("-o", "out"), ("--html", "-o", "out.html"), ("--html", "--before", "before.json")],
    "roofline": [("-o", "out.html")],
    "gate": [("--summary", "out.markdown"), ("--sarif", "out.sarif")],
}
"""What can be written to files; pictures are below."""

BEFORE = {
    "report graph": ("FILE", "--kernel", "smooth"),
    "compare": ("before.json", "FILE"),
    "gate": ("FILE", "--base", "before.json"),
}
"""Commands that show two reports."""


@cache
def list_outputs() -> tuple[tuple[str, ...], ...]:
    """Every command with every format, as arguments."""
    found: list[tuple[str, ...]] = []
    for name, member in list_names().items():
        if name in WITHOUT_REPORTS:
            continue
        parser = argparse.ArgumentParser()
        load_member(commands, member, "COMMAND", Command).add_arguments(parser)
        files = BEFORE.get(name, ("FILE",))
        formats = [action for action in parser._actions if "--format" in action.option_strings]
        flags = [("--format", str(one)) for action in formats for one in action.choices or ()] or [()]
        flags += [("--color", "always"), *TO_FILES.get(name, ())]
        found += [(*name.split(), *files, *flag) for flag in flags]
    return tuple(found)


def write_reports(evil: str) -> str:
    """Reports in the current folder; the name of the one with everything, which is hostile itself."""
    write_report(spoil(make_page_example(), evil), Path("report.json"))
    write_report(spoil(make_before_and_after()[0], evil), Path("before.json"))
    known = "".join(one for one in evil if one not in "/\0" and not ("\ud800" <= one <= "\udfff" and one != "\udc9b"))
    name = f"{os.fsdecode(os.fsencode(known)[:100])}.json"
    Path("report.json").rename(name)
    return name


def run(arguments: Sequence[str], name: str) -> tuple[str, str]:
    """Run a command; returns its output, or the text of its file, and its standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([f"./{name}" if one == "FILE" else one for one in arguments])
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    assert code in (0, 1, 2), texts[1]
    written = [Path(one) for flag, one in pairwise(arguments) if flag in ("-o", "--summary", "--sarif")]
    return (written[0].read_bytes().decode("utf-8") if written else texts[0]), texts[1]


@contextlib.contextmanager
def open_folder(evil: str):  # type: ignore[no-untyped-def]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield write_reports(evil)


@cache
def write_harmless(names: str) -> tuple[tempfile.TemporaryDirectory[str], str]:
    """Reports whose names mean no harm, in a folder for all commands."""
    folder = tempfile.TemporaryDirectory()
    with contextlib.chdir(folder.name):
        return folder, write_reports(names)


@cache
def run_harmless(arguments: tuple[str, ...], names: str) -> str:
    """The output for them."""
    folder, name = write_harmless(names)
    with contextlib.chdir(folder.name):
        return run(arguments, name)[0]


def list_faults(arguments: tuple[str, ...], evil: str, name: str) -> list[str]:
    """List the faults of an output, given the output for a report with harmless texts."""
    shown, told = run(arguments, name)
    form = (
        "html"
        if arguments[-1].endswith(".html") or "--html" in arguments
        else arguments[-1].removeprefix("out.")
        if "--format" in arguments or arguments[-1].startswith("out.")
        else "text"
    )
    faults = find_unseen(told)
    if told.count("\n") != len(told.splitlines()):
        faults.append("a message is split")
    if form in ("json", "sarif"):
        document = json.loads(shown)
        texts = list_texts(document) if form == "sarif" else ()
        return faults + find_unseen(shown) + [one for text in texts for one in find_unseen(text)]
    if form == "html":
        elements, expected = count_elements(shown), count_elements(run_harmless(arguments, "k" * len(evil)))
        return faults + find_unseen(shown, is_page=True) + ([] if elements == expected else [f"{elements - expected}"])
    faults += find_unseen(shown)
    lines = len(run_harmless(arguments, _SHORTENED.sub("k", evil)).split("\n"))
    if len(shown.split("\n")) != lines:
        faults.append(f"{len(shown.split(chr(10)))} lines, not {lines}")
    if form == "github":
        commands_here = ("::error ", "::warning ", "::notice ")
        faults += [line for line in shown.splitlines() if not line.startswith(commands_here)]
    if form == "markdown":
        tokens, expected = count_tokens(shown), count_tokens(run_harmless(arguments, "k" * len(evil)))
        faults += find_autolinks(shown) + ([] if tokens == expected else [f"{tokens - expected} {expected - tokens}"])
    return faults


def check_every_format(evil: str) -> None:
    with open_folder(evil) as name:
        faults = {" ".join(arguments): list_faults(arguments, evil, name) for arguments in list_outputs()}
    assert {arguments: found for arguments, found in faults.items() if found} == {}


@pytest.mark.parametrize("evil", EVERYTHING, ids=["steering", "markup", "markup backwards", "kindly"])
def test_names_are_text_in_every_format(evil: str) -> None:
    check_every_format(evil)


@examples(4)
@given(EVIL)
def test_names_are_text_whatever_they_are(evil: str) -> None:
    check_every_format(evil)


@pytest.mark.parametrize(
    ("evil", "suffix"), [(EVERYTHING[0], ".svg"), (EVERYTHING[1], ".svg"), (EVERYTHING[0], ".png")], ids=["1", "2", "3"]
)
def test_names_are_text_in_pictures(evil: str, suffix: str) -> None:
    with open_folder(evil) as name:
        command = [sys.executable, "-P", "-m", "gpa_lsp", "roofline", f"./{name}", "-o", f"out{suffix}"]
        done = subprocess.run(command, capture_output=True, check=False)  # a fault in the engine ends its process
        assert done.returncode in (0, 2), done.stderr.decode()[-300:]
        assert find_unseen(done.stderr.decode()) == []
        picture = Path(f"out{suffix}").read_bytes()
    if suffix == ".png":
        assert picture.startswith(b"\x89PNG")
        return
    ElementTree.fromstring(picture)
    assert find_unseen(picture.decode()) == []
