"""A cause has one share, whichever view tells of it: hint, heat, problem, hover, and what the page lists by line."""

import re
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.document.html_report.code_columns import KernelAddresses, SourceTexts, TextPool
from gpa_lsp.document.html_report.kernel_section import build_sources
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.report.pipeline import analyse
from tests.editors.workspace import CAUSE, LOOP, VICTIM, Workspace, make_workspace
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "relax")


def find_share(text: str, words: str) -> str:
    """The share that stands where ``words`` has a place for it."""
    found = re.search(words.replace("SHARE", r"([<>\d.]+ %)"), text)
    assert found is not None, text
    return found[1]


def list_caused(profile: Path, line: int) -> str:
    """Share of a line among all samples, as the page lists it by line."""
    kernel = next(one for one in analyse([profile]).kernels if one.name.startswith("relax"))
    assert kernel.analyses is not None
    (answer,) = (one for one in kernel.analyses.answers if one.analysis == "stall_sources")
    (mark,) = (one for one in answer.marks if one.line == line and (one.file or "").endswith("relax.cu"))
    return format_percent(mark.share_ratio or 0.0)


def list_stalled(profile: Path, line: int) -> str:
    """Share of a line beside its text on the page."""
    kernel = next(one for one in analyse([profile]).kernels if one.name.startswith("relax"))
    pool, addresses = TextPool(), KernelAddresses(kernel=0, coded_files=frozenset())
    columns = build_sources(kernel, addresses, pool, SourceTexts(None, is_wanted=False))
    (file,) = (one for one in columns if one["name"].endswith("relax.cu"))
    return pool.texts[file["shares"][file["line"].index(line)]]


def test_a_cause_has_one_share_in_every_view(client: RawClient, workspace: Workspace) -> None:
    options = {"static": {"enable": False}, "client": {"heat": True}}
    client.initialize(workspace.folder, ALL_CAPABILITIES, initializationOptions=options)
    uri, cause = client.open(workspace.source), workspace.find_line(CAUSE)
    found = client.wait_for_diagnostics(uri, lambda all_found: any(is_on(one, cause) for one in all_found))
    (problem,) = (one["message"] for one in found if is_on(one, cause))
    heat = client.wait_for_heat(uri)
    (mark,) = (one["text"] for one in heat["marks"] if one["line"] == cause)
    hint = client.hint_texts(uri)[cause + 1]
    shares = {
        "problem": find_share(problem, "^SHARE of the samples of relax are stalls caused here"),
        "heat": find_share(mark, "causes SHARE"),
        "hint": find_share(hint, "causes SHARE"),
        "hover": find_share(client.read_hover(uri, cause + 1), r"causes \*\*SHARE\*\* of the samples"),
        "page": list_caused(workspace.profile, cause + 1),
    }
    assert len(set(shares.values())) == 1, shares
    assert client.shut_down() == 0


def test_a_stalled_line_has_one_share_in_every_view(client: RawClient, workspace: Workspace) -> None:
    options = {"static": {"enable": False}, "client": {"heat": True}}
    client.initialize(workspace.folder, ALL_CAPABILITIES, initializationOptions=options)
    uri, victim, loop = client.open(workspace.source), workspace.find_line(VICTIM), workspace.find_line(LOOP)
    client.wait_for_diagnostics(uri)
    titles = [title for line, title in client.lenses(uri) if line == loop + 1]
    assert titles and not [one for one in titles if "%" in one], "a lens on a loop says the gain alone"
    (heat,) = (one["text"] for one in client.wait_for_heat(uri)["marks"] if one["line"] == victim)
    spots = client.execute("gpaLsp.listHotSpots", uri)
    shares = {
        "hint": find_share(client.hint_texts(uri)[victim + 1], "SHARE samples, long_scoreboard"),
        "hover": find_share(client.read_hover(uri, victim + 1), r"\*\*SHARE"),
        "heat": find_share(heat, "^SHARE of samples"),
        "list": find_share(
            " ".join(str(one) for one in spots if VICTIM in str(one)), "SHARE of samples, mostly long_scoreboard"
        ),
        "page": find_share(list_stalled(workspace.profile, victim + 1), "^SHARE"),
    }
    assert len(set(shares.values())) == 1, shares


def is_on(diagnostic: Any, line: int) -> bool:
    return bool(diagnostic["range"]["start"]["line"] == line)
