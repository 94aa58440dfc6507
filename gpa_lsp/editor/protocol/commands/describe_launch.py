"""``gpaLsp.describeLaunch``: begin the description of a kernel's launch. A code action on the kernel runs this."""

from msgspec.structs import replace

from gpa_lsp.editor.predicted.actions import name_beside
from gpa_lsp.editor.predicted.results import TemplateJob, TemplateResult
from gpa_lsp.editor.protocol.append_text import append_text
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import ArgumentsError, read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.kernel.names import demangle, shorten_name

_DIED = TemplateResult(failure="the prediction process ended; look at the log")
_QUESTION = "How large is a launch of {}? Nothing in the source says so; correct what is guessed"


async def describe_launch(session: Session, arguments: Arguments) -> str | None:
    """Append to the description beside a source, which is made where there is none: arguments are the document's URI and the kernel's mangled name.

    Sizes that nothing in the source says are asked for, where the client can ask: the question's default is what is emulated in time.

    Returns:
        What was appended; None when there is nothing to append, which is said, or the question was closed.
    """
    uri, kernel = read_text(arguments), read_text(arguments, 1)
    if uri is None or kernel is None:
        raise ArgumentsError("it takes the URI of a source and a kernel's mangled name")
    predictions, path = session.jobs.predictions, session.documents.find_local_path(uri)
    job = await predictions.make(path) if path is not None and predictions.may_serve(path) else None
    if job is None:
        session.client.inform(
            "nothing is described: the source is not open, or not in a trusted workspace, or gpaLsp.emulation.enable is off"
        )
        return None
    asked = TemplateJob(base=job, kernel=kernel)
    found = await predictions.do_beside(asked, limit_s=job.most_s) or _DIED
    if found.guessed and session.abilities.typing:
        told = await session.client.ask_for_text(_QUESTION.format(shorten_name(demangle(kernel))), found.guessed)
        if told is None:
            return None
        if told != found.guessed:
            found = await predictions.do_beside(replace(asked, told=told), limit_s=job.most_s) or _DIED
    if found.failure:
        session.client.inform(f"nothing is described: {found.failure}")
        return None
    text = session.documents.read_open(str(job.launches_path))
    text = text if text is not None else job.launches_text or None
    target = name_beside(uri, job.launches_path)
    await append_text(session.client, target, text, found.text, label="Describe a launch", units=session.units)
    return str(found.text)


COMMAND = Command(name="gpaLsp.describeLaunch", run=describe_launch)
