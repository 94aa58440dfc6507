"""The Model Context Protocol over standard input and output: each question of :class:`~gpa_lsp.agents.answers.Answers` as a tool."""

import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from gpa_lsp import __version__
from gpa_lsp.basis.errors import GpaError, MissingToolError
from gpa_lsp.basis.visible_text import make_one_line

INSTRUCTIONS = (
    "GPU kernel performance: what limits a kernel, which source line causes its stalls, what to change and what that gains. "
    "Loop: list_kernels, advise, explain_line, edit the source, measure again (gpa-lsp profile) or predict, compare. "
    "Estimates are ranges and alternatives: do not add or multiply them. Verify each change by measuring."
)

_MOST_ERROR_BYTES = 1000
_MOST_QUOTED = 80
_MOST_COMPLAINTS = 4


def serve(folder: Path) -> None:
    """Answer until the client leaves.

    Args:
        folder: reports and sources below it are read, nothing else.

    Raises:
        MissingToolError: the package ``mcp`` is not installed.
    """
    build_server(folder).run("stdio")


def build_server(folder: Path) -> Any:
    """The server with its tools and resources, not yet running.

    Raises:
        MissingToolError: the package ``mcp`` is not installed.
    """
    try:
        from mcp.server import MCPServer
    except ModuleNotFoundError as error:
        raise MissingToolError("mcp", needed_for="answering agents", install="pip install 'gpa-lsp[mcp]'") from error
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

    class Server(MCPServer):  # type: ignore[misc, unused-ignore]
        """Says what is wrong with a call in words of ours, of at most so many bytes: the library's have as many as the call, and an address."""

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            tools = {tool.name: tool.input_schema for tool in await self.list_tools()}
            complaint = check_call(name, arguments, tools)
            if complaint:
                raise ToolError(complaint)
            try:
                return await super().call_tool(name, arguments, context)
            except UnexpectedToolError:
                raise
            except ToolError as error:
                raise ToolError(explain_error(name, error)) from error

    server = Server("gpa_lsp", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR")
    _Tools(folder).add_to(server)
    return server


def check_call(name: str, arguments: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]]) -> str:
    """What is wrong with the names in a call; empty where they are right.

    Args:
        name: of the tool.
        arguments: of the call.
        tools: name → schema of its arguments.
    """
    if name not in tools:
        return f"there is no tool {_quote(name)}; there are {', '.join(tools)}"
    known = tools[name].get("properties", {})
    strange = [argument for argument in arguments if argument not in known]
    if strange:
        return f"{name} has no argument {_quote(strange[0])}; it has {', '.join(known)}"
    missing = [argument for argument in tools[name].get("required", ()) if argument not in arguments]
    return f"{name} needs {', '.join(missing)}" if missing else ""


def explain_error(name: str, error: Exception) -> str:
    """Why a call failed: our own words, or which argument is of the wrong kind."""
    cause: Any = error.__cause__
    if not hasattr(cause, "errors"):
        return _cut(str(cause or error))
    wrong = [
        f"{'.'.join(map(str, one['loc'][:1]))} is {_quote(one.get('input'))}: {one['msg'][:1].lower()}{one['msg'][1:]}"
        for one in cause.errors(include_url=False)[:_MOST_COMPLAINTS]
    ]
    return _cut(f"{name}: {'; '.join(wrong)}")


def _quote(value: object) -> str:
    return make_one_line(repr(value)[:_MOST_QUOTED])


def _cut(text: str) -> str:
    shown = make_one_line(text).encode("utf-8", "replace")[:_MOST_ERROR_BYTES]
    return shown.decode("utf-8", "ignore")


class _Tools:
    """The tools. What answers is imported with the first question: a client asks for the list at each start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = threading.Lock()
        self._answers: Any = None

    def add_to(self, server: Any) -> None:
        """Make each a tool or a resource of a server."""
        from mcp.types import ToolAnnotations

        reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        for tool in (self.list_kernels, self.advise, self.explain_line, self.compare, self.predict, self.sass):
            server.tool(annotations=reading, structured_output=False)(tool)
        server.resource("gpa://kernels", name="kernels", mime_type="text/plain")(self.read_kernels)
        server.resource("gpa://kernels/{kernel}", name="kernel", mime_type="text/plain")(self.read_kernel)

    async def list_kernels(
        self,
        report: Annotated[str | None, "A report or folder; all below the current folder without it."] = None,
        start: Annotated[int, "First row."] = 0,
    ) -> str:
        """Kernels of the measured reports here: id, time, samples, what limits each, its best suggestion. Begin with this."""
        return await self._ask(lambda: self._answers.list_kernels(report, start))

    async def advise(
        self,
        kernel: Annotated[str | None, "Id or name; the one that took longest without it."] = None,
        suggestion: Annotated[str | None, "Name of a suggestion, for its places, doubts and basis."] = None,
        start: Annotated[int, "First row."] = 0,
    ) -> str:
        """What limits a kernel, where its stalls begin, what to change and the range of what that gains (estimated from samples)."""
        return await self._ask(lambda: self._answers.advise(kernel, suggestion, start))

    async def explain_line(
        self,
        file: Annotated[str, "The source file, or an end of its path."],
        line: Annotated[int, "1-based, as measured."],
        kernel: Annotated[str | None, "Id or name; every kernel with the line without it."] = None,
        start: Annotated[int, "First row."] = 0,
    ) -> str:
        """What a source line waits for and what waits for it, with samples and stall reasons (measured)."""
        return await self._ask(lambda: self._answers.explain_line(file, line, kernel, start))

    async def compare(
        self,
        before: Annotated[str, "A report."],
        after: Annotated[str, "A report of the changed program."],
        kernel: Annotated[str | None, "Name; all without it."] = None,
        start: Annotated[int, "First row."] = 0,
    ) -> str:
        """Whether kernels got faster between two reports, by how much, and what changed (measured)."""
        return await self._ask(lambda: self._answers.compare(before, after, kernel, start))

    async def predict(
        self,
        source: Annotated[str, "A .cu file with NAME.launch.toml beside it."],
        kernel: Annotated[str | None, "Name; all without it."] = None,
        start: Annotated[int, "First row."] = 0,
    ) -> str:
        """Memory accesses, faults, divergence and the predicted limit of a source's kernels with no GPU (emulated, nothing measured)."""
        return await self._ask(lambda: self._answers.predict(source, kernel, start))

    async def sass(
        self,
        kernel: Annotated[str | None, "Id or name; the one that took longest without it."] = None,
        file: Annotated[str | None, "Of the line, or an end of its path."] = None,
        line: Annotated[int | None, "Only instructions of this source line."] = None,
        start: Annotated[int, "First row."] = 0,
    ) -> str:
        """Machine instructions with samples, main stall reason and source line (measured)."""
        return await self._ask(lambda: self._answers.sass(kernel, file, line, start))

    async def read_kernels(self) -> str:
        """The kernels of the reports here."""
        return await self._read(self.list_kernels())

    async def read_kernel(self, kernel: str) -> str:
        """What limits a kernel and what to change."""
        return await self._read(self.advise(kernel))

    @staticmethod
    async def _read(answer: Awaitable[str]) -> str:
        """An answer to who reads a resource."""
        from mcp.server.mcpserver.exceptions import ResourceError, ToolError

        try:
            return await answer
        except ToolError as error:
            raise ResourceError(_cut(str(error))) from error

    async def _ask(self, ask: Callable[[], str]) -> str:
        """An answer, made in a thread: a report may take seconds, and the client may ask for something else meanwhile."""
        import anyio.to_thread

        return await anyio.to_thread.run_sync(partial(self._answer, ask))

    def _answer(self, ask: Callable[[], str]) -> str:
        from mcp.server.mcpserver.exceptions import ToolError

        with self._one_at_a_time:
            try:
                if self._answers is None:
                    from gpa_lsp.agents.answers import Answers

                    self._answers = Answers(self._folder)
                return ask()
            except GpaError as error:
                raise ToolError(self._name_from_here(str(error))) from error

    def _name_from_here(self, text: str) -> str:
        """Paths as the agent names them: where its folder lies is nobody's business."""
        for folder in dict.fromkeys((str(self._folder), os.path.realpath(self._folder))):
            text = text.replace(f"{folder}{os.sep}", "").replace(folder, "this folder")
        return text
