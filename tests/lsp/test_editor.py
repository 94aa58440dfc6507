"""The client as an object: progress bars it agrees to late."""

import asyncio
from typing import Any

from lsprotocol import types

from gpa_lsp.editor.protocol.client import Client

CAN_SHOW = types.ClientCapabilities(window=types.WindowClientCapabilities(work_done_progress=True))


class SlowClient:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.answer = asyncio.Event()

    def notify(self, method: str, params: Any = None) -> None:
        assert method == "$/progress"
        self.values.append(params.value)

    async def send_request_async(self, method: str, params: Any = None) -> None:
        assert method == "window/workDoneProgress/create"
        await self.answer.wait()


async def let_answer(client: SlowClient) -> None:
    await asyncio.sleep(0)  # the question is sent
    client.answer.set()
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_bar_agreed_to_late_shows_the_step_that_goes_on() -> None:
    client = SlowClient()
    bar = Client(client, CAN_SHOW).start_progress("Reading profiles", lambda: None)
    bar.report("one.ncu-rep", 0.1)
    bar.report("two.ncu-rep: blame", 0.5)
    assert client.values == []
    await let_answer(client)
    begun, step = client.values
    assert (begun.kind, begun.title) == ("begin", "Reading profiles")
    assert (step.kind, step.message, step.percentage) == ("report", "two.ncu-rep: blame", 50)
    bar.end("2 of 2 profiles read")
    assert client.values[-1].message == "2 of 2 profiles read"


async def test_work_that_is_done_before_the_client_agrees_has_no_bar() -> None:
    client = SlowClient()
    bar = Client(client, CAN_SHOW).start_progress("Reading profiles", lambda: None)
    bar.report("one.ncu-rep", 0.1)
    bar.end("1 of 1 profiles read")
    await let_answer(client)
    assert client.values == []
