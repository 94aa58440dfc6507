"""The process between us and a compiler driver: ``python -I -S leash.py LIMIT_S MEMORY_BYTES FILE_BYTES COMMAND…``.

nvcc starts a dozen programs. They run in a session of their own, and all of it is ended when the time is up and when this process' standard input
ends, which is also what happens when the one that asked dies of anything. What they print goes where our own output goes; how it ended is the
exit status: one of the four numbers below, else 0 or 1.

A file of its own, without imports from this package: it starts in a third of the time, and nothing in the folder it runs in has a say in what it
imports.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading

TIMED_OUT, LET_GO, NOT_STARTED, KILLED = 240, 241, 242, 243
TEMPORARY = "gpa-lsp-"


def main(arguments: list[str]) -> int:
    """Run a command.

    Args:
        arguments: seconds it may take, bytes of address space and of a file that each of its processes may have, the command.
    """
    limit_s, memory_bytes, file_bytes, command = (
        float(arguments[0]),
        int(arguments[1]),
        int(arguments[2]),
        arguments[3:],
    )

    def limit() -> None:
        set_limits(memory_bytes, file_bytes)

    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=limit if os.name == "posix" else None,  # noqa: PLW1509 - there is one thread
        )
    except (OSError, ValueError) as error:
        os.write(2, f"{error}\n".encode(errors="replace"))
        return NOT_STARTED
    was_let_go = threading.Event()

    def listen() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        was_let_go.set()
        end(process)

    threading.Thread(target=listen, daemon=True).start()
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        status = None
    end(process)  # also what a compiler that has ended left behind
    if was_let_go.is_set():
        remove_folder()
        return LET_GO
    if status is None:
        return TIMED_OUT
    return KILLED if status < 0 else min(status, 1)


def remove_folder() -> None:
    """The one that asked may be dead; then nobody else removes its temporary folder, which is the one we are in."""
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes a third of the time this process takes to start
    if os.path.basename(folder).startswith(TEMPORARY):  # noqa: PTH119
        os.chdir(os.path.dirname(folder))  # noqa: PTH120
        shutil.rmtree(folder, ignore_errors=True)


def set_limits(memory_bytes: int, file_bytes: int) -> None:
    """Runs in the command's process before the command does."""
    import resource  # not on Windows

    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the command and everything in its session."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        words = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        with contextlib.suppress(OSError):
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    with contextlib.suppress(OSError):
        process.kill()


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
