"""A real Neovim with a user interface attached, driven over its msgpack channel.

A client of our own instead of pynvim's, because every wait here has an end: a Neovim that stands at a prompt answers nothing.
"""

import contextlib
import itertools
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack

from tests.editors.neovim.screen import Screen
from tests.patience import LIMIT_S, wait_until

PLUGIN = Path(__file__).resolve().parents[3] / "editors" / "neovim"

COLUMNS, ROWS = 150, 40


class NeovimError(AssertionError):
    """Neovim refused a request; the message is its own."""


class Neovim:
    """One Neovim process.

    Args:
        program: the executable.
        folder: where it runs, and below which it keeps everything it writes.
        init: Lua that is its whole configuration.
        environment: what is different from the test's own.
    """

    def __init__(self, program: Path, folder: Path, init: str, environment: Mapping[str, str] | None = None) -> None:
        home = folder.parent / f"{folder.name} home"
        home.mkdir(exist_ok=True)
        configuration = home / "init.lua"
        configuration.write_text(init, encoding="utf-8")
        places = {
            name: str(home / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
        }
        for place in places.values():  # two that start at once stumble over each other when both make them
            (Path(place) / "nvim").mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [program, "--embed", "-n", "-i", "NONE", "-u", configuration],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "HOME": str(home), **places, "NVIM_LOG_FILE": str(home / "log"), **(environment or {})},
            start_new_session=True,
        )
        self.screen = Screen(COLUMNS, ROWS)
        self.notifications: list[tuple[str, Any]] = []
        self._ids = itertools.count(1)
        self._responses: dict[int, tuple[Any, Any]] = {}
        self._changed = threading.Condition()
        self._packer = msgpack.Packer(unicode_errors="surrogateescape")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.request("nvim_ui_attach", COLUMNS, ROWS, {"rgb": True, "ext_linegrid": True})

    def request(self, method: str, *arguments: Any) -> Any:
        """Call a function of Neovim's interface."""
        number = next(self._ids)
        assert self.process.stdin is not None
        self.process.stdin.write(self._packer.pack([0, number, method, arguments]))
        self.process.stdin.flush()
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._responses, LIMIT_S):
                raise NeovimError(f"no answer to {method}{arguments!r}; the screen shows\n{self.screen.text}")
            error, result = self._responses.pop(number)
        if error is not None:
            raise NeovimError(error[1] if isinstance(error, list) else error)
        return result

    def lua(self, code: str, *arguments: Any) -> Any:
        """Run Lua; what it returns."""
        return self.request("nvim_exec_lua", code, arguments)

    def command(self, text: str) -> None:
        """Run an Ex command."""
        self.request("nvim_command", text)

    def type(self, keys: str) -> None:
        """Type, with keys such as ``<CR>``; does not wait for what comes of it."""
        self.request("nvim_input", keys)

    def edit(self, path: Path) -> None:
        self.lua("vim.cmd.edit(vim.fn.fnameescape(...))", str(path))

    def wait_for(self, what: str, accept: Callable[[], Any]) -> Any:
        """The first true value of ``accept``."""
        return wait_until(
            accept, lambda: f"{what}; the screen shows\n{self.screen.text}\nmessages: {self.messages()}", pause_s=0.03
        )

    def wait_for_lua(self, code: str, *arguments: Any) -> Any:
        """The first result of Lua code that is neither nil nor false nor empty."""
        return self.wait_for(code, lambda: self.lua(code, *arguments))

    def wait_for_text(self, text: str) -> tuple[int, int]:
        """Position of a text on the screen, once it is there."""
        found: tuple[int, int] = self.wait_for(f"{text!r} on the screen", lambda: self.screen.find(text))
        return found

    def wait_for_line(self, *texts: str) -> str:
        """The line of the screen that holds some texts, once there is one: lenses that come later move it, but not what stands in it."""
        found: str = self.wait_for(f"{texts} in a line of the screen", lambda: self.screen.find_line(*texts))
        return found

    def messages(self) -> str:
        """Output of ``:messages``; a placeholder when Neovim does not answer."""
        try:
            return str(self.request("nvim_exec2", "messages", {"output": True})["output"])
        except AssertionError:
            return "<no answer>"

    def quit(self) -> None:
        """End it as a user would, so that it can end its servers."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(self._packer.pack([2, "nvim_input", ["<C-\\><C-N>"]]))  # away from a prompt
                self.process.stdin.write(self._packer.pack([2, "nvim_command", ["qall!"]]))
                self.process.stdin.flush()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # before its pipe is closed: the next Neovim's pipe may get the same number, and lose an answer to this reader
        self._reader.join(LIMIT_S)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        unpacker = msgpack.Unpacker(
            raw=False, unicode_errors="surrogateescape", ext_hook=_read_handle, strict_map_key=False
        )
        while data := os.read(stream.fileno(), 1 << 16):
            unpacker.feed(data)
            for message in unpacker:
                self._take(message)
        with self._changed:
            self._changed.notify_all()

    def _take(self, message: Sequence[Any]) -> None:
        with self._changed:
            if message[0] == 1:
                self._responses[message[1]] = (message[2], message[3])
            elif message[0] == 2 and message[1] == "redraw":
                self.screen.take(message[2])
            elif message[0] == 2:
                self.notifications.append((message[1], message[2]))
            self._changed.notify_all()


def _read_handle(code: int, data: bytes) -> Any:
    """Buffers, windows and tab pages are numbers of a kind."""
    return msgpack.unpackb(data)
