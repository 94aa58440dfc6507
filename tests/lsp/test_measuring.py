"""Measuring from the editor, through the whole server: saving, asking, running, cancelling, and what is shown afterwards."""

import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.collect.processes import MARK, find_marked, wait_until_gone
from tests.editor.views import LISTING
from tests.lsp.conftest import StartClient, make_ancient, write_profile
from tests.lsp.raw_client import RawClient
from tests.lsp.test_past import FASTER
from tests.patience import wait_until

NAME = "#name saxpy(float*, float*)"


def write_profiler(workspace: Path, body: str) -> list[str]:
    """A script that stands for the profiler; ``output`` is where the report is expected."""
    script = workspace / "profile.py"
    script.write_text(f"import os, subprocess, sys, time\noutput = sys.argv[1]\n{textwrap.dedent(body)}")
    return [sys.executable, str(script), "${output}"]


def report(listing: str, measured_s: int, time_ns: int) -> str:
    return f"{NAME}\n#time {time_ns}\n#measured {measured_s}\n{listing}\n#end"


class Session:
    """A client whose user answers questions about commands as told."""

    def __init__(self, workspace: Path, client: RawClient, answer: str | None, **options: Any) -> None:
        self.client = client
        client.replies["window/showMessageRequest"] = lambda params: {"title": answer} if answer is not None else None
        asked = {"client": {"output": True, "status": True, "questions": True, **options}}
        self.uri = client.open_measured(workspace, initializationOptions=asked)

    def lens(self) -> str:
        return self.client.titles(self.uri)[0]

    def wait_for_state(self, state: str) -> None:
        self.client.wait_for("gpaLsp/status", lambda params: params["state"] == state)

    def output(self) -> str:
        return "".join(n["params"]["text"] for n in self.client.notifications if n["method"] == "gpaLsp/output")


@pytest.fixture
def project(workspace: Path) -> Path:
    write_profile(workspace / "saxpy.ncu-rep", LISTING, NAME[1:], "time 200000", "measured 2000")
    make_ancient(workspace / "saxpy.cu")
    return workspace


StartSession = Callable[..., Session]


@pytest.fixture
def start_session(start_client: StartClient, project: Path) -> StartSession:
    def start(command: list[str], *, answer: str | None = "Run once", **options: Any) -> Session:
        environment = {"GPA_LSP_CACHE_DIR": str(project.parent / "cache"), MARK: str(project)}
        client = start_client(environment, settings={"profile": {"command": command}})
        return Session(project, client, answer, **options)

    return start


def test_a_save_measures_and_says_what_changed(start_session: StartSession, project: Path) -> None:
    text = report(FASTER, 3000, 100_000)
    session = start_session(write_profiler(project, f"print('measuring')\nopen(output, 'w').write({text!r})"))
    session.client.save(session.uri)
    wait_until(lambda: "−50 % since" in session.lens(), "the new measurement is shown")
    (question,) = session.client.questions()
    assert "profile.py" in question and str(project) in question
    assert "measuring" in session.output()
    session.client.forget()
    session.client.save(session.uri)
    wait_until(lambda: "measuring" in session.output(), "the second save measures")
    assert len(session.client.questions()) == 2  # once is once


def test_after_always_nobody_is_asked_again(start_session: StartSession, project: Path) -> None:
    session = start_session(write_profiler(project, "print('measuring')"), answer="Always in this workspace")
    for _ in range(2):
        session.client.forget()
        session.client.save(session.uri)
        wait_until(lambda: "measuring" in session.output(), "it is measured")
    assert len(session.client.questions()) == 1


def test_a_question_that_was_closed_waits_in_the_status_line(start_session: StartSession, project: Path) -> None:
    session = start_session(write_profiler(project, f"open({str(project / 'ran')!r}, 'w')"), answer=None)
    assert session.client.execute("gpaLsp.answerMeasuring", "once") == "nothing"
    session.client.save(session.uri)
    status = session.client.wait_for("gpaLsp/status", lambda params: params["state"] == "asking")
    assert "a save waits" in status["text"] and "profile.py" in status["question"]
    wait_until(session.client.questions, "the user is asked")
    wait_until(lambda: session.client.execute("gpaLsp.answerMeasuring") == "asked", "it can be asked again")
    session.client.forget()
    asked = len(session.client.questions())
    session.client.save(session.uri)  # it takes the place of the one before, and nobody is asked twice
    assert session.client.execute("gpaLsp.listKernels") and not (project / "ran").exists()
    assert session.client.execute("gpaLsp.answerMeasuring", "once") == "answered"
    session.wait_for_state("failed")  # it writes no report
    assert (project / "ran").exists() and len(session.client.questions()) == asked


def test_where_questions_are_in_the_way_a_save_only_says_that_it_waits(
    start_session: StartSession, project: Path
) -> None:
    command = write_profiler(project, f"open({str(project / 'ran')!r}, 'w')")
    session = start_session(command, questions=False)
    session.client.save(session.uri)
    message = session.client.wait_for_message()
    assert "a save waits for your answer (gpaLsp.answerMeasuring)" in message and "profile.py" in message
    session.wait_for_state("asking")
    assert session.client.questions() == []
    assert session.client.execute("gpaLsp.answerMeasuring") == "asked"  # who wants to see it is asked, and says "once"
    session.wait_for_state("failed")
    assert (project / "ran").exists() and len(session.client.questions()) == 1
    session.client.forget()
    session.client.save(session.uri)
    session.wait_for_state("asking")
    assert session.client.execute("gpaLsp.cancelMeasuring") is True
    session.client.wait_for("gpaLsp/status", lambda params: params["question"] == "")
    assert session.client.execute("gpaLsp.answerMeasuring", "once") == "nothing"


@pytest.mark.parametrize("answer", ["Never", None])
def test_nothing_runs_that_the_user_did_not_confirm(
    start_session: StartSession, project: Path, answer: str | None
) -> None:
    command = write_profiler(project, f"open({str(project / 'ran')!r}, 'w')")
    session = start_session(command, answer=answer, status=False)
    session.client.save(session.uri)
    wait_until(session.client.questions, "the user is asked")
    session.client.execute(
        "gpaLsp.measure", session.uri
    )  # who asks for it is asked again, once the first answer was heard
    wait_until(lambda: len(session.client.questions()) == 2, "the user is asked again")
    assert not (project / "ran").exists()
    assert "gpaLsp" not in session.output()


def test_nothing_runs_in_a_workspace_that_is_not_trusted(start_session: StartSession, project: Path) -> None:
    command = write_profiler(project, f"open({str(project / 'ran')!r}, 'a').write('once ')")
    session = start_session(command, trusted=False)
    session.client.save(session.uri)
    assert session.client.execute("gpaLsp.measure", session.uri) is False
    message = session.client.wait_for_message()
    assert "not trusted" in message
    assert session.client.questions() == [] and not (project / "ran").exists()
    session.client.execute("gpaLsp.setTrust", True)
    session.client.save(session.uri)
    session.wait_for_state("failed")  # it runs when trust was given, and writes no report
    assert (project / "ran").read_text() == "once " and len(session.client.questions()) == 1


def test_cancelling_ends_everything_that_was_started(start_session: StartSession, project: Path) -> None:
    body = """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import time; print('child', flush=True); time.sleep(3600)"], start_new_session=True)
        print("hanging", flush=True)
        time.sleep(3600)
    """
    session = start_session(write_profiler(project, body))
    server_alone = find_marked(str(project)).keys()
    assert session.client.execute("gpaLsp.measure", session.uri) is True
    wait_until(lambda: "hanging" in session.output() and "child" in session.output(), "the run goes on")
    assert find_marked(str(project)).keys() - server_alone
    assert session.client.execute("gpaLsp.cancelMeasuring") is True
    wait_until(lambda: find_marked(str(project)).keys() <= server_alone, "no process is left")
    wait_until(lambda: session.client.execute("gpaLsp.cancelMeasuring") is False, "there is nothing left to cancel")


def test_no_process_outlives_a_server_that_is_killed(start_session: StartSession, project: Path) -> None:
    body = "print('hanging', flush=True)\ntime.sleep(3600)"
    session = start_session(write_profiler(project, body))
    session.client.execute("gpaLsp.measure", session.uri)
    wait_until(lambda: "hanging" in session.output(), "the run goes on")
    session.client.kill()
    wait_until_gone(str(project))


def test_a_failure_is_explained(start_session: StartSession, project: Path) -> None:
    body = "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission')\nsys.exit(1)"
    session = start_session(write_profiler(project, body))
    session.client.save(session.uri)
    message = session.client.wait_for_message()
    assert "performance counters" in message
    assert "NVreg_RestrictProfilingToAdminUsers" in message + session.output()
    session.wait_for_state("failed")


def test_settings_of_the_workspace_start_nothing_by_themselves(start_client: StartClient, project: Path) -> None:
    """A repository can hold settings for editors, and the server is told nothing of where settings come from."""
    trap = write_profiler(project, f"open({str(project / 'ran')!r}, 'w')")
    (project / ".vscode").mkdir()
    (project / ".vscode" / "settings.json").write_text(json.dumps({"gpaLsp.profile.command": trap}))
    (project / ".nvim.lua").write_text("os.execute('touch ran')")
    (project / "gpa_lsp").mkdir()
    (project / "gpa_lsp" / "__init__.py").write_text(f"open({str(project / 'ran')!r}, 'w')")
    (project / "numpy.py").write_text(f"open({str(project / 'ran')!r}, 'w')")
    client = start_client(settings={"profile": {"command": trap}}, cwd=project)
    client.save(client.open_measured(project, initializationOptions={"client": {"status": False}}))
    client.wait_for_request("window/showMessageRequest")
    client.wait_for_message("nothing was run")
    assert not (project / "ran").exists()
    assert os.listdir(project / ".vscode") == ["settings.json"]  # noqa: PTH208
