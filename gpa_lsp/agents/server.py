"""The Model Context Protocol over standard input and output: each question of :class:`~gpa_lsp.agents.answers.Answers` as a tool."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from gpa_lsp import __version__
from gpa_lsp.basis.errors import GpaError, MissingToolError

INSTRUCTIONS = (
    "GPU kernel performance: what limits a kernel, which source line causes its stalls, what to change and what that gains. "
    "Loop: list_kernels, advise, explain_line, edit the source, measure again (gpa-lsp profile) or predict, compare. "
    "Estimates are ranges and alternatives: do not add or multiply them. Verify each change by measuring."
)


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
    server = MCPServer("gpa_lsp", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR")
    _Tools(folder).add_to(server)
    return server


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
        return await self.list_kernels()

    async def read_kernel(self, kernel: str) -> str:
        """What limits a kernel and what to change."""
        return await self.advise(kernel)

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
                raise ToolError(str(error)) from error
