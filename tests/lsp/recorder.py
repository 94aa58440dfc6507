"""Record what a server and all it starts open and run: by strace where there is one, else by Python's own audit events."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_CALLS = "open,openat,openat2,creat,execve,execveat,readlink,readlinkat,connect"
_TRACED = re.compile(r"^\d+ +(?P<call>\w+)\((?P<rest>.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

_HOOK = """
import os, runpy, sys

_log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
_CALLS = {{"open": "openat", "os.listdir": "openat", "os.scandir": "openat", "subprocess.Popen": "execve", "os.exec": "execve",
          "os.posix_spawn": "execve", "os.system": "execve", "socket.connect": "connect"}}

def _record(event, arguments):
    call = _CALLS.get(event)
    if call is None or not arguments or isinstance(arguments[0], int):
        return
    name = os.path.abspath(os.fsdecode(arguments[0])) if isinstance(arguments[0], (str, bytes, os.PathLike)) else repr(arguments[0])
    os.write(_log, (call + "\\t" + name + "\\n").encode(errors="backslashreplace"))

sys.addaudithook(_record)
for _other in {others!r}:
    runpy.run_path(_other)
"""


def find_strace() -> str | None:
    """A strace that works here; containers often forbid it."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    tried = subprocess.run([strace, "-f", "--seccomp-bpf", "-o", os.devnull, "true"], capture_output=True, check=False)
    return strace if tried.returncode == 0 else None


@dataclass
class Recorder:
    """Records one server.

    Attributes:
        folder: for its own files.
        is_traced: strace is used.
    """

    folder: Path
    is_traced: bool

    @property
    def log(self) -> Path:
        return self.folder / "record"

    def start(self, monkeypatch: Any, environment: Mapping[str, str]) -> dict[str, str]:
        """Record the servers started from now on; the environment to start them in."""
        self.folder.mkdir()
        self.log.touch()
        if self.is_traced:
            real = subprocess.Popen
            prefix = [
                str(find_strace()),
                "-f",
                "--seccomp-bpf",
                "-y",
                "-s",
                "4096",
                "-e",
                f"trace={_CALLS}",
                "-o",
                str(self.log),
            ]
            monkeypatch.setattr(
                "tests.lsp.forked_servers.subprocess.Popen", lambda command, **more: real([*prefix, *command], **more)
            )
            return dict(environment)
        folders = [Path(one) for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
        others = [str(folder / "sitecustomize.py") for folder in folders if (folder / "sitecustomize.py").is_file()]
        (self.folder / "sitecustomize.py").write_text(_HOOK.format(log=str(self.log), others=others))
        return {**environment, "PYTHONPATH": os.pathsep.join([str(self.folder), *map(str, folders)])}

    @cached_property
    def _calls(self) -> list[tuple[str, str]]:
        """(system call, path) of everything that was tried."""
        lines = self.log.read_text(errors="replace").splitlines()
        if not self.is_traced:
            return [tuple(line.split("\t", 1)) for line in lines]  # type: ignore[misc]
        found = []
        for line in lines:
            match = _TRACED.match(line)
            name = None if match is None else _QUOTED.search(match["rest"])
            if match is not None and name is not None and "ENOENT" not in line and "ENOTDIR" not in line:
                found.append((match["call"], _make_absolute(match["rest"], name[1])))
        return found

    def list_opened(self) -> set[str]:
        """Files and folders that were opened, as they were named."""
        return {path for call, path in self._calls if call.startswith(("open", "creat"))}

    def list_run(self) -> set[str]:
        """Programs that were started."""
        return {path for call, path in self._calls if call.startswith("exec")}

    def list_connected(self) -> list[str]:
        """Addresses that were connected to."""
        return [path for call, path in self._calls if call == "connect"]


def _make_absolute(rest: str, name: str) -> str:
    """strace names the folder a relative path starts from."""
    folder = re.match(r"(?:AT_FDCWD|\d+)<([^>]*)>", rest)
    return name if name.startswith("/") or folder is None else f"{folder[1]}/{name}"


SYSTEM = (
    "/usr", "/lib", "/lib64", "/bin", "/proc/self", "/proc/sys", "/sys/devices/system/cpu", "/sys/fs/cgroup",
    "/dev/null", "/dev/urandom",
)  # fmt: skip
"""Where the loader and the C library look, by name."""

SYSTEM_FILES = {
    *("/", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/timezone"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat"),
}


def list_foreign(paths: set[str], allowed: list[Path]) -> list[str]:
    """Paths that lead, links followed, to none of the places that are allowed."""
    roots = [os.path.realpath(one) for one in (sys.prefix, sys.base_prefix, *sys.path, *allowed) if one]
    return [
        path
        for path in sorted(paths)
        if path not in SYSTEM_FILES
        and not _is_below(os.path.normpath(path), SYSTEM)
        and not _is_below(os.path.realpath(path), roots)
        and not re.match(r"/proc/\d+/", path)
    ]


def _is_below(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)
