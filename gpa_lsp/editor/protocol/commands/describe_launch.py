"""``gpaLsp.describeLaunch``: begin the description of a kernel's launch. A code action on the kernel runs this."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from gpa_lsp.editor.predicted.results import TemplateJob, TemplateResult
from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.kernel.names import demangle, shorten_name

_DIED = TemplateResult(failure="the prediction process ended; look at the log")
_QUESTION = "How large is a launch of {}? Nothing in the source says so; correct what is guessed"


async def describe_launch(session: SessionActions, arguments: Sequence[Any]) -> str | None:
    """Append to the description beside a source, which is made where there is none: arguments are the document's URI and the kernel's mangled name.

    Sizes that nothing in the source says are asked for, where the client can ask: the question's default is what is emulated in time.

    Returns:
        What was appended; None when there is nothing to append, which is said, or the question was closed.
    """
    uri, kernel = read_text(arguments), read_text(arguments, 1)
    if uri is None or kernel is None:
        return None
    path = session.documents.find_local_path(uri)
    job = await session.predictions.make(path) if path is not None and session.predictions.may_serve(path) else None
    if job is None:
        session.show_message(
            "nothing is described: the source is not open, or not in a trusted workspace, or gpaLsp.emulation.enable is off"
        )
        return None
    asked = TemplateJob(base=job, kernel=kernel)
    found = await session.predictions.do_beside(asked, limit_s=job.most_s) or _DIED
    if found.guessed:
        told = await session.ask_for_text(_QUESTION.format(shorten_name(demangle(kernel))), found.guessed)
        if told is None:
            return None
        if told != found.guessed:
            found = await session.predictions.do_beside(replace(asked, told=told), limit_s=job.most_s) or _DIED
    if found.failure:
        session.show_message(f"nothing is described: {found.failure}")
        return None
    text = session.documents.read_open(str(job.launches_path))
    text = text if text is not None else job.launches_text or None
    await session.append_beside(uri, job.launches_path, text, found.text, "Describe a launch")
    return str(found.text)


COMMAND = Command(name="gpaLsp.describeLaunch", run=describe_launch)
