"""The real server over the wire: a fix is compiled while its line is looked at, and nothing waits for it that need not."""

import copy
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.cli.main import main
from tests.editors.workspace import DOUBLES, LOOP, Workspace, make_workspace, write_profile
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient
from tests.lsp.test_launch_times_client import find_workers
from tests.patience import wait_until

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

RESOLVING = copy.deepcopy(ALL_CAPABILITIES)
RESOLVING["textDocument"]["codeAction"] = {
    "dataSupport": True,
    "resolveSupport": {"properties": ["edit"]},
    "honorsChangeAnnotations": True,
    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}},
}
RESOLVING["workspace"]["workspaceEdit"] = {
    "documentChanges": True,
    "changeAnnotationSupport": {"groupsOnLabel": True},
}
COMPILING = {"static": {"enable": True}}
COMPILER = "gpa_lsp.report.fixes.trials"
"""In the command line of processes that compile fixes."""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "wörk")


class Looking:
    """A client that looks at a line."""

    def __init__(
        self,
        client: RawClient,
        workspace: Workspace,
        text: str,
        options: Any = COMPILING,
        capabilities: Any = RESOLVING,
    ) -> None:
        self.client = client
        client.initialize(workspace.folder, capabilities, initializationOptions=options)
        self.uri = client.open(workspace.source)
        self.line = workspace.find_line(text)
        wait_until(self.list_fixes, "a fix")

    def list_fixes(self) -> Any:
        place = {"line": self.line, "character": 0}
        context = {"diagnostics": [], "only": ["quickfix"], "triggerKind": 2}
        return self.client.ask("codeAction", self.uri, range={"start": place, "end": place}, context=context)

    def find_verdict(self, words: str) -> Any:
        """The first fix whose title says something, as soon as there is one."""

        def find() -> Any:
            return next((one for one in self.list_fixes() or () if words in one["title"]), None)

        wait_until(find, words)
        return find()


def test_a_fix_comes_with_what_the_compiler_makes_of_it(client: RawClient, workspace: Workspace) -> None:
    looking = Looking(client, workspace, LOOP, {**COMPILING, "client": {"previews": True}})
    found = looking.find_verdict("loads in flight 1 → 8")
    assert found["title"].startswith(
        "Replace #pragma unroll 1 by #pragma unroll 8: 16 → 32 registers, occupancy unchanged"
    )
    assert found["data"]["state"] == "changed"
    (change,) = found["edit"]["documentChanges"]
    assert {edit["annotationId"] for edit in change["edits"]} == set(found["edit"]["changeAnnotations"])
    (said,) = found["edit"]["changeAnnotations"].values()
    assert said["label"] == "Replace #pragma unroll 1 by #pragma unroll 8" and "needsConfirmation" not in said
    assert said["description"].startswith("Compiled: 16 → 32 registers")
    assert client.request("codeAction/resolve", found)["title"] == found["title"]


def test_advice_whose_edit_changes_nothing_is_withdrawn_from_the_lenses(
    client: RawClient, workspace: Workspace
) -> None:
    text = workspace.source.read_text(encoding="utf-8")
    assert "step < steps" in text and "#pragma unroll 1" in text
    text = text.replace("#pragma unroll 1", "").replace("step < steps", "step < 1")
    workspace.source.write_text(text, encoding="utf-8")
    write_profile(workspace, "original", workspace.profile)
    client.initialize(workspace.folder, RESOLVING, initializationOptions={"static": {"enable": False}})
    assert any("Unroll a loop" in title for title in list_lenses(client, client.open(workspace.source)))
    with RawClient() as trusting:
        looking = Looking(trusting, workspace, LOOP)
        wait_until(
            lambda: not any("Unroll a loop" in title for title in list_lenses(trusting, looking.uri)),
            "lenses that drop a fix that gains nothing before a user looks at it",
        )
        found = looking.find_verdict("compiles to the same code")
        assert "×" not in found["title"]
        again = looking.find_verdict("compiles to the same code")
        assert again["title"] == found["title"], "whoever looks again is told again"


def list_lenses(client: RawClient, uri: str) -> list[str]:
    return wait_until(lambda: client.titles(uri), "lenses")


def test_advice_quotes_what_its_edit_was_compiled_to_as_the_shell_does(
    client: RawClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looking = Looking(client, workspace, LOOP)
    looking.find_verdict("loads in flight 1 → 8")

    def read_page() -> str:
        return str(client.execute("showLine", looking.uri, looking.line))

    monkeypatch.chdir(workspace.folder)
    assert main(["advise", str(workspace.profile), "--compile", "--details", "--kernel", "relax"]) == 0
    printed = capsys.readouterr().out
    (said,) = [line.strip() for line in printed.splitlines() if "loads in flight 1 → 8" in line]
    assert said.startswith("compiled: 16 → 32 registers")
    wait_until(lambda: said in read_page(), read_page)


def test_edits_come_at_once_where_nobody_would_ask_for_them(client: RawClient, workspace: Workspace) -> None:
    looking = Looking(client, workspace, LOOP, capabilities=None)
    assert all(one["edit"]["changes"] for one in looking.list_fixes())
    assert "changes" in looking.find_verdict("loads in flight")["edit"], "a client that knows no annotations gets none"


@contextmanager
def stopped_compiler(client: RawClient) -> Iterator[None]:
    """Stop the compiler for a while: a server that waited for it would wait without end."""
    processes = wait_until(lambda: find_workers(client.process.pid, COMPILER), "a process that compiles")
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal")
def test_a_fix_that_is_taken_before_it_is_compiled_is_not_waited_for(client: RawClient, workspace: Workspace) -> None:
    looking = Looking(client, workspace, DOUBLES)
    (fix, *_) = [one for one in looking.list_fixes() if "0.7f" in one["title"]]
    with stopped_compiler(client):
        resolved = client.request("codeAction/resolve", fix)
    assert resolved["edit"], "with or without a verdict"
    wait_until(lambda: "16 → 12 registers" in client.request("codeAction/resolve", fix)["title"], "a verdict")


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal")
def test_a_fix_that_is_looked_away_from_is_cancelled_and_others_go_on(client: RawClient, workspace: Workspace) -> None:
    looking = Looking(client, workspace, DOUBLES)
    (fix, *_) = looking.list_fixes()
    with stopped_compiler(client):
        client.send(id="away", method="codeAction/resolve", params=fix)
        client.notify("$/cancelRequest", {"id": "away"})
        assert client.hover(looking.uri, looking.line + 1) and looking.list_fixes(), "nobody waits for a compiler"


def test_a_changed_text_has_other_fixes(client: RawClient, workspace: Workspace) -> None:
    looking = Looking(client, workspace, DOUBLES)
    (fix, *_) = [one for one in looking.list_fixes() if "0.7f" in one["title"]]
    client.change(looking.uri, 2, "\n" + workspace.source.read_text())
    assert client.request("codeAction/resolve", fix).get("edit") == fix.get("edit")


@pytest.mark.parametrize(
    "options",
    [
        {**COMPILING, "client": {"trusted": False}},
        {"static": {"enable": False}},
    ],
)
def test_nothing_is_compiled_that_nobody_agreed_to(client: RawClient, workspace: Workspace, options: Any) -> None:
    looking = Looking(client, workspace, LOOP, options)
    (fix, *_) = looking.list_fixes()
    assert fix.get("data") is None and fix["edit"], "as before there were verdicts"
    time.sleep(0.5)
    assert not find_workers(client.process.pid, COMPILER)


@pytest.mark.parametrize("data", [None, 7, "x", [], {}, {"fix": 7}, {"fix": "nothing"}, {"fix": None, "state": "x"}])
def test_an_action_of_somebody_else_gets_nothing_new(client: RawClient, workspace: Workspace, data: Any) -> None:
    client.initialize(workspace.folder, RESOLVING)
    asked = {"title": "Something", "data": data}
    answered = client.request("codeAction/resolve", asked)
    assert answered == {"title": "Something"}
    told = {"title": "Something", "command": {"title": "Do", "command": "theirs", "arguments": [{"data": data}]}}
    assert client.request("codeAction/resolve", told) == {"title": "Something"}
