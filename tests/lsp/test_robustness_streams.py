"""A client that stops reading, one that is gone, and one that says goodbye in the middle of work: nothing waits, nothing is left behind."""

import contextlib
import fcntl
import struct
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collect.processes import MARK, find_children, find_marked, is_alive, measure_peak_bytes, wait_until_gone
from tests.editor.views import LISTING, SOURCE
from tests.lsp.conftest import LISTINGS, make_ancient, write_profile
from tests.lsp.raw_client import RawClient
from tests.lsp.test_measuring import NAME, write_profiler
from tests.patience import LIMIT_S, wait_until


class StallingClient(RawClient):
    """A client that can stop reading, and whose user can think for long."""

    is_thinking = False

    def __init__(self, **options: Any) -> None:
        self.reading = threading.Event()
        self.reading.set()
        super().__init__(**options)

    def _answer(self, message: dict[str, Any]) -> None:
        if not self.is_thinking:
            super()._answer(message)

    def _take(self, message: dict[str, Any]) -> None:
        super()._take(message)
        self.reading.wait()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "saxpy.cu").write_text(SOURCE)
    make_ancient(folder / "saxpy.cu")
    return folder


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., StallingClient]]:
    clients: list[StallingClient] = []

    def begin(**settings: Any) -> StallingClient:
        mark = {MARK: str(project), "GPA_LSP_CACHE_DIR": str(project.parent / "cache")}
        clients.append(StallingClient(environment={**LISTINGS, **mark}, settings=settings))
        clients[-1].initialize(project, initializationOptions={"client": {"status": True, "output": True}})
        return clients[-1]

    yield begin
    for client in clients:
        client.reading.set()
        client.kill()


PIPE_BYTES = 1 << 16


def count_waiting_bytes(client: RawClient) -> int:
    """Number of bytes that the server has written and the client has not read."""
    assert client.process.stdout is not None
    return int(struct.unpack("i", fcntl.ioctl(client.process.stdout, termios.FIONREAD, bytes(4)))[0])


def open_large_document(client: RawClient, project: Path) -> dict[str, Any]:
    """Make a kernel whose SASS is long; a request for its text."""
    write_profile(
        project / "large.ncu-rep",
        "\n".join(f"saxpy.cu:{1 + i % 7}  FADD R{i % 99}, R1, R2  ; wait=2/1" for i in range(3000)),
        NAME[1:],
    )
    client.wait_for("gpaLsp/status", lambda status: status["kernels"] == 1)
    (kernel,) = client.execute("gpaLsp.listKernels")
    text = client.request("workspace/textDocumentContent", {"uri": kernel["sassUri"]})["text"]
    assert len(text) > 100_000
    return {"method": "workspace/textDocumentContent", "params": {"uri": kernel["sassUri"]}}


def test_a_client_that_never_reads_again_is_left(start: Callable[..., StallingClient], project: Path) -> None:
    client = start()
    question = open_large_document(client, project)
    client.reading.clear()
    peak, sent = 0, 0
    while client.process.poll() is None:
        try:
            for _ in range(20):
                sent += 1
                client.send(id=f"more {sent}", **question)
        except BrokenPipeError:
            break
        peak = max(peak, measure_peak_bytes(client.process.pid))
    client.process.wait(LIMIT_S)
    print(f"left after {sent} requests, at {peak >> 20} MB")
    assert peak < 400 << 20
    wait_until_gone(str(project))


def test_the_end_of_stdin_is_heard_behind_a_full_pipe(start: Callable[..., StallingClient], project: Path) -> None:
    hanging = write_profiler(project, "print('hanging', flush=True)\ntime.sleep(3600)")
    client = start(profile={"command": hanging})
    client.replies["window/showMessageRequest"] = lambda params: {"title": "Run once"}
    question = open_large_document(client, project)
    ask_to_measure(client)
    client.wait_for("gpaLsp/output", lambda params: "hanging" in params["text"])
    client.reading.clear()
    for number in range(50):
        client.send(id=f"more {number}", **question)
    wait_until(lambda: count_waiting_bytes(client) > PIPE_BYTES // 2, "the pipe fills")
    assert client.process.poll() is None and client.process.stdin is not None
    client.process.stdin.close()
    client.process.wait(LIMIT_S)
    wait_until_gone(str(project))


def wait_for_tools(client: RawClient, count: int) -> None:
    """Wait until so many of the programs run that workers and commands start here."""

    def look() -> bool:
        names: list[str] = []
        for process_id in find_children(client.process.pid):
            with contextlib.suppress(OSError):  # it may end while we look
                names.append(Path(f"/proc/{process_id}/comm").read_text())
        return names.count("sleep\n") == count

    wait_until(look, f"{count} tools run")


def begin_reading(client: RawClient, project: Path) -> None:
    write_profile(project / "slow.ncu-rep", LISTING, "spawn 3600")
    wait_for_tools(client, 1)


def begin_measuring(client: RawClient, project: Path) -> None:
    del project
    client.replies["window/showMessageRequest"] = lambda params: {"title": "Run once"}
    ask_to_measure(client)
    client.wait_for("gpaLsp/output", lambda params: "hanging" in params["text"])
    wait_for_tools(client, 1)


def ask_to_measure(client: RawClient) -> None:
    """Ask as soon as the settings have arrived."""
    command = {"command": "gpaLsp.measure"}
    wait_until(lambda: client.request("workspace/executeCommand", command) is True, "there is a command to run")


def begin_asking(client: StallingClient, project: Path) -> None:
    del project
    client.wait_for_request("workspace/configuration")
    client.is_thinking = True
    ask_to_measure(client)
    client.wait_for_request("window/showMessageRequest")


def begin_everything(client: StallingClient, project: Path) -> None:
    begin_measuring(client, project)
    write_profile(project / "slow.ncu-rep", LISTING, "spawn 3600")
    wait_for_tools(client, 2)
    client.is_thinking = True


@pytest.mark.parametrize("begin", [begin_reading, begin_measuring, begin_asking, begin_everything])
@pytest.mark.parametrize("is_orderly", [True, False], ids=["shutdown", "gone"])
def test_leaving_in_the_middle_of_work(
    start: Callable[..., StallingClient], project: Path, begin: Callable[[StallingClient, Path], None], is_orderly: bool
) -> None:
    hanging = write_profiler(project, "print('hanging', flush=True)\nsubprocess.run(['sleep', '3600'])")
    client = start(profile={"command": hanging})
    begin(client, project)
    processes = {client.process.pid, *find_children(client.process.pid)}
    if is_orderly:
        assert client.shut_down() == 0
    else:
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(LIMIT_S) == 1
    wait_until(lambda: not any(map(is_alive, processes)) and not find_marked(str(project)), "no process is left")
