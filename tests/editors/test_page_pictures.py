"""The README's pictures of Visual Studio Code, taken when GPA_LSP_SCREENSHOTS names a folder for them."""

import json
import os
from pathlib import Path

import pytest

from tests.editors.vscode.code import choose_settings, find_names, find_tools, run_npm, run_suite, tell_facts
from tests.editors.workspace import Workspace, make_workspace, write_profile

NOT_FOR_PICTURES = " /* größe, 測定 */"
"""Tries columns in the tests; a reader of the page would wonder."""


BUSY_UNITS = {
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 46.7,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 38.2,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 91.4,
}
"""Made up like the other counts; without them a page says first that they are unknown."""


def make_workspace_for_pictures(folder: Path) -> Workspace:
    """The project of the tests without what only tries columns, and how busy the units were in its first launch."""
    workspace = make_workspace(folder)
    text = workspace.source.read_text(encoding="utf-8")
    assert NOT_FOR_PICTURES in text
    workspace.source.write_text(text.replace(NOT_FOR_PICTURES, ""), encoding="utf-8")
    write_profile(workspace, "original", workspace.profile)
    document = json.loads(workspace.profile.read_text(encoding="utf-8"))
    document["launches"][0]["metrics"] |= BUSY_UNITS
    workspace.profile.write_text(json.dumps(document), encoding="utf-8")
    return workspace


@pytest.mark.skipif(
    "GPA_LSP_SCREENSHOTS" not in os.environ, reason="pictures for the README: GPA_LSP_SCREENSHOTS says where"
)
def test_pictures_of_the_readme(tmp_path: Path) -> None:
    tools = find_tools(tmp_path)
    built = run_npm("run", "build")
    assert built.returncode == 0, built.stdout + built.stderr
    workspace = make_workspace_for_pictures(tmp_path / "relax")
    results = run_suite(
        tools,
        "pictures",
        tmp_path,
        workspace=workspace.folder,
        settings={
            **choose_settings(workspace),
            "editor.occurrencesHighlight": "off",
            "editor.matchBrackets": "never",
        },
        facts=tell_facts(workspace),
        window={"viewport": {"width": 1130, "height": 720}, "scale": 2},
    )
    assert [(result.name, result.error) for result in results] == [(name, None) for name in find_names("pictures")]
    assert {path.stem for path in tools.screenshots.glob("*.png")} >= {
        f"{subject}-{ground}" for subject in ("heat", "cause", "sass", "page") for ground in ("dark", "light")
    }
