"""A scripted client walks through the loop over standard input and output, as an agent's host would."""

import re
import sys
from pathlib import Path

import pytest

from gpa_lsp.agents.answers import MOST_BYTES
from tests.agents.test_answers import folder
from tests.patience import LIMIT_S

mcp = pytest.importorskip("mcp", reason="needs the extra [mcp]")

__all__ = ["folder"]

TOOLS = {"list_kernels", "advise", "explain_line", "compare", "predict", "sass"}


def read_text(result: object) -> str:
    (content,) = getattr(result, "content")  # noqa: B009 - the client's types are not ours
    text = content.text
    assert isinstance(text, str)
    return text


@pytest.mark.asyncio
async def test_a_conversation(folder: Path) -> None:
    import anyio

    parameters = mcp.StdioServerParameters(command=sys.executable, args=["-m", "gpa_lsp", "mcp"], cwd=folder)
    with anyio.fail_after(LIMIT_S):
        async with mcp.stdio_client(parameters) as (reading, writing), mcp.ClientSession(reading, writing) as session:
            started = await session.initialize()
            assert started.server_info.name == "gpa_lsp" and "advise" in started.instructions
            listed = (await session.list_tools()).tools
            assert {tool.name for tool in listed} == TOOLS
            assert all(tool.description and tool.annotations.read_only_hint for tool in listed)
            kernels = read_text(await session.call_tool("list_kernels", {}))
            (kernel,) = re.findall(r"^(k\w+) short_def_use", kernels, re.M)
            advice = read_text(await session.call_tool("advise", {"kernel": kernel}))
            (file, line) = re.findall(r"^cause: (\S+):(\d+) ", advice, re.M)[0]
            told = read_text(await session.call_tool("explain_line", {"file": file, "line": int(line)}))
            assert "waits for" in told
            sass = read_text(await session.call_tool("sass", {"kernel": kernel, "start": 3}))
            assert all(len(text.encode()) <= MOST_BYTES for text in (kernels, advice, told, sass))
            failed = await session.call_tool("advise", {"kernel": "nobody"})
            assert failed.is_error and "list_kernels" in read_text(failed)
            resources = {str(one.uri) for one in (await session.list_resources()).resources}
            assert resources == {"gpa://kernels"}
            (read,) = (await session.read_resource(f"gpa://kernels/{kernel}")).contents
            assert read.text == advice
