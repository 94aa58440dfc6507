"""A worker that does what a test tells it."""

import os
import subprocess
import time
from pathlib import Path

from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.worker import Tell, Work

_held: list[bytes] = []


def do(job: tuple[str, object], tell: Tell) -> object:
    """Do one thing, and say first that it has begun."""
    verb, value = job
    tell(Step(words=verb, done=0, total=1))
    if verb == "say":
        return value
    if verb == "name":
        return os.getpid()
    if verb == "wait for":
        while not Path(str(value)).exists():
            time.sleep(0.01)
    if verb == "work until":
        while not Path(str(value)).exists():
            pass
    if verb == "fail":
        raise ZeroDivisionError(value)
    if verb == "hold":
        _held.append(b"x" * int(str(value)))
    if verb == "start":
        tool = subprocess.Popen(["/bin/sh", "-c", f"touch {value}; exec sleep 3600"])
        tool.wait()
    if verb == "exit":
        os._exit(int(str(value)))
    return None


WORK = Work(do=do, explain=lambda job, reason: reason)
