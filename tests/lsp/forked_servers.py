"""Servers forked from a Python that has imported them: importing the protocol takes 0.6 s, and two hundred tests start a server of their own.

A forked server is a process with its own streams, environment and folder. What it cannot show is how a server starts, which tests ask with ``module``
or without ``is_forked``; and ``/proc`` shows the environment of the Python it was forked from, though its children have its own.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.patience import LIMIT_S

SERVER = "gpa_lsp.editor.protocol"


def start_server(
    words: list[str], environment: Mapping[str, str], cwd: Path | None, *, is_forked: bool
) -> "subprocess.Popen[bytes] | ForkedProcess":
    """A server with the streams of ``subprocess.PIPE``: forked, if it may be, is the usual one, and no benchmark asks what its start costs."""
    is_usual = words == [sys.executable, "-P", "-m", SERVER]
    if is_forked and is_usual and "PYTEST_CURRENT_TEST" in os.environ and hasattr(os, "pidfd_open"):
        at_start = frozenset(one for one in environment.items() if one[0].startswith(("LD_", "PYTHON")))
        return ForkedProcess(_start_parent(at_start), environment, cwd)
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=environment)


@cache
def _start_parent(at_start: frozenset[tuple[str, str]]) -> socket.socket:
    """A Python that forks servers, and ends when this process does.

    Args:
        at_start: variables that a process looks at when it starts.
    """
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    others = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "PYTHON"))}
    variables = {**others, **dict(at_start), "OPENBLAS_NUM_THREADS": "1"}  # who forks has no other threads
    command = [sys.executable, "-P", __file__, str(its.fileno())]
    parent = subprocess.Popen(command, env=variables, pass_fds=[its.fileno()])
    its.close()

    def end() -> None:
        ours.shutdown(socket.SHUT_RDWR)  # whoever was forked from here has it, too
        parent.wait()

    atexit.register(end)
    return ours


class ForkedProcess:
    """A server that somebody else forked, as ``subprocess`` has processes."""

    def __init__(self, parent: socket.socket, environment: Mapping[str, str], cwd: Path | None) -> None:
        (stdin, our_in), (our_out, stdout), (our_err, stderr), (status, told) = (os.pipe() for _ in range(4))
        request = json.dumps([dict(environment), str(cwd or Path.cwd())]).encode()
        socket.send_fds(parent, [request], [stdin, stdout, stderr, told])
        for theirs in (stdin, stdout, stderr, told):
            os.close(theirs)
        self.stdin = os.fdopen(our_in, "wb")
        self.stdout, self.stderr, self._status = (os.fdopen(file, "rb") for file in (our_out, our_err, status))
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(SERVER, timeout or LIMIT_S)
            self.returncode = int(self._status.readline())
            self._status.close()
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _fork(asked: socket.socket) -> None:
    """Fork a server for each request, and tell its number and then its status; return in each server."""
    running: dict[int, tuple[int, int]] = {}  # by the file that becomes readable at its end
    while True:
        for ready in select.select([asked.fileno(), *running], [], [])[0]:
            if ready in running:
                process_id, told = running.pop(ready)
                os.close(ready)
                os.write(told, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]))
                os.close(told)
                continue
            request, files, *_ = socket.recv_fds(asked, 1 << 20, 4)
            if not request:
                os._exit(0)
            *streams, told = files
            if (process_id := os.fork()) == 0:
                for number, file in enumerate(streams):
                    os.dup2(file, number)
                for file in (*files, *running, *(pipe for _, pipe in running.values()), asked.detach()):
                    os.close(file)
                environment, cwd = json.loads(request)
                os.environ.clear()
                os.environ.update(environment)
                os.chdir(cwd)
                return
            for file in streams:
                os.close(file)
            running[os.pidfd_open(process_id)] = process_id, told
            os.write(told, b"%d\n" % process_id)


if __name__ == "__main__":
    import runpy

    # What a server loads at its start, and what it loads for its first answers
    import gpa_lsp.document.roofline_text
    import gpa_lsp.editor.protocol.server
    import gpa_lsp.editor.source.diagnostics  # noqa: F401

    _fork(socket.socket(fileno=int(sys.argv.pop())))
    runpy.run_module(SERVER, run_name="__main__", alter_sys=True)
