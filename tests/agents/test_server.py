"""A scripted client walks through the loop over standard input and output, as an agent's host would."""

import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gpa_lsp.agents.answers import MOST_BYTES, Answers
from tests.agents.test_answers import folder
from tests.patience import LIMIT_S

__all__ = ["folder"]

Talk = Callable[..., AbstractAsyncContextManager[Any]]
TOOLS = {"list_kernels", "advise", "explain_line", "compare", "predict", "sass"}


def read_text(result: object) -> str:
    (content,) = getattr(result, "content")  # noqa: B009 - the client's types are not ours
    text = content.text
    assert isinstance(text, str)
    return text


@pytest.fixture
def mcp() -> Any:
    return pytest.importorskip("mcp", reason="needs the client of the package mcp")  # its import takes a second


@pytest.fixture
def talk(mcp: Any, folder: Path) -> Talk:
    """Starts the server, and the library's client of it."""
    import anyio

    @asynccontextmanager
    async def start(**how: str) -> AsyncIterator[Any]:
        parameters = mcp.StdioServerParameters(command=sys.executable, args=["-m", "gpa_lsp", "mcp"], cwd=folder)
        with anyio.fail_after(3 * LIMIT_S):
            async with mcp.Client(parameters, **how) as client:
                yield client

    return start


HOSTILE = [
    *("", "nobody", "k000000", "x" * 100_000, "../../etc/passwd", "/etc/passwd", "a\0b"),
    *("\u202e\u0007\n# heading", "%00", "[x](http://e.com)", "ü" * 900, "*", "C:\\\\x"),
]
NUMBERS = [-1, 0, 10**9, 10**30, 2**63]
WRONG = [None, [], {}, True, 1.5, "12x", {"a": [1] * 1000}, "y" * 100_000]


def list_hostile_calls(kernel: str, report: str) -> list[tuple[str, dict[str, object]]]:
    calls: list[tuple[str, dict[str, object]]] = []
    for word in HOSTILE:
        calls += [
            ("list_kernels", {"report": word}),
            ("advise", {"kernel": word}),
            ("advise", {"kernel": kernel, "suggestion": word}),
            ("explain_line", {"file": word, "line": 3}),
            ("explain_line", {"file": "original.cu", "line": 22, "kernel": word}),
            ("compare", {"before": report, "after": word}),
            ("compare", {"before": report, "after": report, "kernel": word}),
            ("predict", {"source": word}),
            ("sass", {"kernel": word}),
            ("sass", {"kernel": kernel, "file": word, "line": 22}),
            ("advise", {word or "_": 1}),
            (word or "_", {}),
        ]
    for number in NUMBERS:
        calls += [
            ("sass", {"kernel": kernel, "start": number}),
            ("sass", {"kernel": kernel, "line": number}),
            ("explain_line", {"file": "original.cu", "line": number}),
            ("list_kernels", {"start": number}),
        ]
    calls += [
        (tool, {name: value})
        for tool in sorted(TOOLS)
        for name in ("kernel", "start", "line", "file")
        for value in WRONG
    ]
    return calls


async def test_whatever_is_asked_the_answer_is_short_and_says_what_to_do(talk: Talk, mcp: Any, folder: Path) -> None:
    report = "example.gpa-profile.json"
    async with talk() as client:
        (kernel,) = re.findall(r"^(k\w+) short_def_use", read_text(await client.call_tool("list_kernels", {})), re.M)
        wrong = []
        for tool, arguments in list_hostile_calls(kernel, report):
            try:
                result = await client.call_tool(tool, arguments)
            except mcp.MCPError as error:
                text, shown = str(error), "refused"
            else:
                text, shown = read_text(result), "failed" if result.is_error else "told"
            where = f"{tool}({str(arguments)[:200]}) {shown}: {text[:300]}"
            is_well = 0 < len(text.encode()) <= MOST_BYTES and (text.isprintable() or shown == "told")
            if not is_well or any(word in text for word in ("pydantic", "Traceback", str(folder), "root:")):
                wrong.append(where)
            if shown == "refused" or text.startswith("Error executing tool"):
                wrong.append(where)
        assert "\n".join(wrong) == ""
        for word in HOSTILE:
            try:
                await client.read_resource(f"gpa://kernels/{word[:200]}")
            except Exception as error:
                assert len(str(error).encode()) <= MOST_BYTES and "pydantic" not in str(error), word
        assert "short_def_use" in read_text(await client.call_tool("advise", {})), "it answers still"


async def test_wrong_arguments_are_named_in_words_of_ours(talk: Talk) -> None:
    async with talk() as client:

        async def ask(tool: str, **arguments: object) -> str:
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            return read_text(result)

        assert await ask("advise", kernal="x") == "advise has no argument 'kernal'; it has kernel, suggestion, start"
        assert await ask("explain_line", file="k.cu") == "explain_line needs line"
        assert (await ask("sass", start="ten")).startswith("sass: start is 'ten': input should be a valid integer")
        assert (await ask("advise", kernel="nobody")).startswith("no kernel has the id or name 'nobody'")
        assert (
            await ask("think")
            == "there is no tool 'think'; there are list_kernels, advise, explain_line, compare, predict, sass"
        )


@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
async def test_the_library_understands_every_version(
    talk: Talk, mcp: Any, folder: Path, mode: str, version: str
) -> None:
    """Messages of the server pass the library's type checks; texts of the tools are what Python's callers get, byte for byte."""
    answers = Answers(folder)
    async with talk(mode=mode) as client:
        assert client.protocol_version == version
        if mode != version:  # who says at once which version it speaks asks for no more
            assert client.server_info.name == "gpa_lsp" and "advise" in client.instructions
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        assert all(tool.description and tool.annotations.read_only_hint for tool in tools)
        for tool in tools:
            Draft202012Validator.check_schema(tool.input_schema)
            assert all(one["description"] for one in tool.input_schema["properties"].values())
        listed = answers.list_kernels()
        assert read_text(await client.call_tool("list_kernels", {})) == listed
        (kernel,) = re.findall(r"^(k\w+) short_def_use", listed, re.M)
        for tool, arguments in (
            ("advise", {"kernel": kernel}),
            ("advise", {"kernel": kernel, "suggestion": "loop_unrolling"}),
            ("explain_line", {"file": "original.cu", "line": 22}),
            ("sass", {"kernel": kernel, "start": 3}),
            ("compare", {"before": "example.gpa-profile.json", "after": "example.gpa-profile.json"}),
        ):
            told = read_text(await client.call_tool(tool, arguments))
            assert told == getattr(answers, tool)(**arguments), tool
            assert len(told.encode()) <= MOST_BYTES
        assert [str(one.uri) for one in (await client.list_resources()).resources] == ["gpa://kernels"]
        (template,) = (await client.list_resource_templates()).resource_templates
        (read,) = (await client.read_resource(template.uri_template.replace("{kernel}", kernel))).contents
        assert read.text == answers.advise(kernel)
        (read,) = (await client.read_resource("gpa://kernels")).contents
        assert read.text == listed
        for uri in ("gpa://kernels/nobody", "gpa://elsewhere"):
            with pytest.raises(mcp.MCPError):
                await client.read_resource(uri)
