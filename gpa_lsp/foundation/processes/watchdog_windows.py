"""The process that watches over one command on Windows: ``python -I -S watchdog_windows.py OPTIONS COMMAND…``.

The same contract as :mod:`gpa_lsp.foundation.processes.watchdog`. What is a session and a subreaper there is a *job object* here: the watchdog
puts itself
into a job that is closed when the watchdog ends, and with the job ends every process in it, which is everything the command started. Memory and
files are not limited.
"""

import ctypes
import errno
import json
import os
import subprocess
import sys
import threading
import time

_KILL_ON_JOB_CLOSE = 0x2000
_EXTENDED_LIMITS = 9


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("per_process_user_time", ctypes.c_int64),
        ("per_job_user_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("largest_working_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority_class", ctypes.c_uint32),
        ("scheduling_class", ctypes.c_uint32),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("basic", _BasicLimits),
        ("transfers", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    )


def main(arguments: list[str]) -> int:
    """Watch over one command.

    Args:
        arguments: options as :func:`gpa_lsp.foundation.processes.watched_command.isolate_watchdog` writes them, the command.
    """
    if sys.platform != "win32":
        return 1
    options, command = json.loads(arguments[0]), arguments[1:]
    is_in_job = _enter_job()
    wanted_end = threading.Event()
    threading.Thread(target=_wait_for_supervisor, args=(wanted_end,), daemon=True).start()
    os.environ["NODEFAULTCURRENTDIRECTORYINEXEPATH"] = (
        "1"  # nor by the command itself, where a shell looks for more programs
    )
    program = find_program(command[0])
    started_s = time.monotonic()
    try:
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
        process = subprocess.Popen(
            [program, *command[1:]],
            cwd=options["folder"],
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW,
        )
    except (OSError, ValueError) as error:
        number = (error.errno if isinstance(error, OSError) else None) or errno.ENOEXEC
        _say({"not_started": number, "words": f"{command[0]}: {error}"})
        return 0
    ending = _wait_for_end(process, wanted_end, started_s + options["clock_s"])
    duration_s = time.monotonic() - started_s
    if not is_in_job:
        system = os.environ.get("SYSTEMROOT", "C:\\Windows")
        subprocess.run(
            [f"{system}\\System32\\taskkill.exe", "/T", "/F", "/PID", str(process.pid)],
            capture_output=True,
            check=False,
        )
    _say({"ending": ending, "status": process.poll(), "duration_s": duration_s, "processor_s": None, "left": []})
    os._exit(0)  # closes the job


def find_program(name: str) -> str | None:
    """The program of a command.

    One that is named without folder is never taken from the current one, which is a workspace. (``shutil.which`` looks there first of all
    until Python 3.12, whatever it is told.)
    """
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]  # noqa: PTH117
    suffixes = ["", *os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")]
    names = [name + suffix for suffix in suffixes]
    if not os.path.dirname(name):  # noqa: PTH120 - pathlib takes a third of the time this process takes to start
        names = [os.path.join(folder, one) for folder in folders for one in names]  # noqa: PTH118
    return next(filter(os.path.isfile, names), None)


def _enter_job() -> bool:
    """Put this process into a job of its own; whether that was possible."""
    if sys.platform != "win32":
        return False
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = ctypes.c_void_p
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    job = ctypes.c_void_p(kernel.CreateJobObjectW(None, None))
    limits = _ExtendedLimits()
    limits.basic.flags = _KILL_ON_JOB_CLOSE
    if not kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)):
        return False
    return bool(kernel.AssignProcessToJobObject(job, ctypes.c_void_p(kernel.GetCurrentProcess())))


def _wait_for_supervisor(wanted_end: threading.Event) -> None:
    """The supervisor closes our standard input to cancel, and by dying."""
    os.read(0, 1)
    wanted_end.set()


def _wait_for_end(process: "subprocess.Popen[bytes]", wanted_end: threading.Event, deadline_s: float) -> str:
    while process.poll() is None:
        if wanted_end.wait(0.01):
            return "cancelled"
        if time.monotonic() >= deadline_s:
            return "timed out"
    return "ended"


def _say(event: dict[str, object]) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
