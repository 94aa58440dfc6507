"""Commands of launches that are described, and what is emulated, simulated and timed of them, and of code alone."""

from pathlib import Path

from lsprotocol import types
from msgspec.structs import replace

from gpa_lsp.document.blocks import Part
from gpa_lsp.document.layout import Style
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.editor.jobs.background_job import find_description
from gpa_lsp.editor.jobs.simulated import ASKED_S, Simulations, word_remedy
from gpa_lsp.editor.lines.positions import Positions, UnitCounter
from gpa_lsp.editor.predicted.actions import explain_undescribed_kernel, name_beside
from gpa_lsp.editor.predicted.results import (
    ComparisonJob,
    ComparisonResult,
    PageJob,
    PageResult,
    TemplateJob,
    TemplateResult,
)
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.commands import Arguments
from gpa_lsp.editor.protocol.plain_json import ArgumentsError, find_mangled, read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.timed.view import build_times
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.line_map import split_lines


def build_append(uri: str, text: str | None, addition: str, units: UnitCounter) -> types.WorkspaceEdit:
    """The edit.

    Args:
        text: what it holds; None for a file that is to be made.
    """
    if text is None:
        document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None)
        start = types.Position(0, 0)
        insertion = types.TextEdit(range=types.Range(start, start), new_text=addition)
        create = types.CreateFile(uri=uri, options=types.CreateFileOptions(ignore_if_exists=True))
        return types.WorkspaceEdit(
            document_changes=[create, types.TextDocumentEdit(text_document=document, edits=[insertion])]
        )
    end = find_end(text, units)
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    insertion = types.TextEdit(range=types.Range(end, end), new_text=f"{gap}{addition}")
    return types.WorkspaceEdit(changes={uri: [insertion]})


def find_end(text: str, units: UnitCounter) -> types.Position:
    """The place behind the last character of a text."""
    lines = split_lines(text)
    return Positions(lines=lines, units=units).find_place(len(lines), len(lines[-1]))


async def _append_text(
    client: Client, uri: str, text: str | None, addition: str, *, label: str, units: UnitCounter
) -> bool:
    """Let the client make the edit and show the file; where it cannot make files, show what is to be put there.

    Args:
        text: what it holds; None where there is none.
    """
    if not can_edit(client, makes_file=text is None):
        client.show_document(label, f"```toml\n{addition}```\n")
        return False
    params = types.ApplyWorkspaceEditParams(edit=build_append(uri, text, addition, units), label=label)
    answer = await client.ask(types.WORKSPACE_APPLY_EDIT, params, limit_s=None)
    is_applied = bool(getattr(answer, "applied", False))
    if is_applied:
        end = types.Position(0, 0) if text is None else find_end(text, units)
        client.show_location(types.Location(uri=uri, range=types.Range(end, end)))
    return is_applied


def can_edit(client: Client, *, makes_file: bool) -> bool:
    """Whether a client takes such an edit from us. Neovim makes files and does not say that it knows changes of documents, which come with them."""
    kinds = client.read("workspace.workspace_edit.resource_operations") or ()
    return client.can("workspace.apply_edit") and (not makes_file or types.ResourceOperationKind.Create in kinds)


_DIED = "the prediction process ended; look at the log"
_QUESTION = "How large is a launch of {}? Nothing in the source says so; correct what is guessed"


async def describe_launch(session: Session, arguments: Arguments) -> str | None:
    """Append a kernel's launch to the description beside a source, which is made where there is none: arguments are the document's URI and the
    kernel's mangled name.

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
    found = await predictions.do_beside(asked, limit_s=job.most_s) or TemplateResult(failure=_DIED)
    if found.guessed and session.abilities.typing:
        told = await session.client.ask_for_text(_QUESTION.format(shorten_name(demangle(kernel))), found.guessed)
        if told is None:
            return None
        if told != found.guessed:
            found = await predictions.do_beside(replace(asked, told=told), limit_s=job.most_s) or TemplateResult(
                failure=_DIED
            )
    if found.failure:
        session.client.inform(f"nothing is described: {found.failure}")
        return None
    text = session.documents.read_open(str(job.launches_path))
    text = text if text is not None else job.launches_text or None
    target = name_beside(uri, job.launches_path)
    await _append_text(session.client, target, text, found.text, label="Describe a launch", units=session.units)
    return str(found.text)


async def show_prediction(session: Session, arguments: Arguments) -> dict[str, str] | str | None:
    """Show what was predicted of an open source: arguments are the document's URI, the number of a launch from 0, and ``"page"`` for a page of
    HTML in any case.

    Returns:
        For clients that show pages, ``uri`` of the file and ``place``, the fragment of the launch. Others are shown a text, which is returned; those
        that asked for the page get it in a browser. None when nothing is predicted, which is said.
    """
    uri, number, kind = (*arguments, None, None, None)[:3]
    path = session.documents.find_local_path(uri) if isinstance(uri, str) else None
    state = None if path is None else session.documents.find_findings(path).predicted
    if state is None or not state.result.job.launches_text:
        session.client.inform(explain_undescribed_kernel(None))
        return None
    if not session.abilities.pages and kind != "page":
        page = state.result.page or "Nothing could be emulated."
        return session.client.show_document(f"predictions for {state.result.job.path.name}", page)
    base, predictions = state.result.job, session.jobs.predictions
    target = predictions.name_file(base.path, "prediction.html")
    result = await predictions.do_beside(PageJob(base=base, target=target), limit_s=2 * base.most_s) or PageResult(
        failure=_DIED
    )
    if result.failure:
        session.client.inform(f"the page cannot be written: {result.failure}")
        return None
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(state.result.launches)
    return session.pages.show(target, f"#k{number}" if is_number else "")


def show_statics(session: Session, arguments: Arguments) -> str | None:
    """Show what the code alone says of a kernel: arguments are the document's URI and the kernel's mangled name.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when there is no such kernel.
    """
    uri, wanted = (*arguments, None, None)[:2]
    view = session.view(uri) if isinstance(uri, str) else None
    anchors = () if view is None or view.statics is None else view.statics.anchors
    for anchor in anchors:
        if anchor.kernel.mangled_name == wanted:
            return session.client.show_document(shorten_name(anchor.kernel.name), anchor.kernel.page)
    session.client.inform("nothing is known of this kernel's code any more")
    return None


def show_times(session: Session, arguments: Arguments) -> str | None:
    """Show how long the described launches of an open source take on the GPU of this computer: the argument is its URI.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when nothing of it was timed.
    """
    uri = next(iter(arguments), None)
    view = session.view(uri) if isinstance(uri, str) else None
    anchors = () if view is None else view.timed
    names = {anchor.line: anchor.change.time.name for anchor in anchors}
    parts = [Part(title=name, style=Style.TITLE, blocks=[*build_times(anchors, line)]) for line, name in names.items()]
    if not parts:
        session.client.inform("no launch of this source was timed")
        return None
    return session.client.show_document("Times of described launches", "\n".join(write_markdown(parts)))


async def simulate(session: Session, arguments: Arguments) -> bool:
    """Simulate the described launches of an open source; arguments are the ``uri`` of a source or of its description, and the mangled name of a
    kernel or none for all that are described.
    """
    uri = read_text(arguments)
    path = None if uri is None else session.documents.find_local_path(uri)
    if path is not None and await session.jobs.simulations.simulate(path, read_text(arguments, 1)):
        return True
    session.client.inform(
        "nothing is simulated: the source is not open, or not in a trusted workspace, or gpaLsp.emulation.enable is off"
    )
    return False


async def compare_simulated(session: Session, arguments: Arguments) -> dict[str, str] | None:
    """Simulate a described launch of a measured kernel, with the code, the GPU and the clocks of its report, and show both sides unless the client
    does that itself: the kernel whose mangled name was sent, or the one that a line (``uri, line``) is in.

    Returns:
        ``uri`` of the file and ``place``, which is empty; None when there is nothing to show, which is said.
    """
    wanted = find_mangled(session, arguments)
    shown = next((one for one in session.snapshot.visible if one.kernel.report.mangled_name == wanted), None)
    if shown is None:
        session.client.inform("put the cursor into a measured kernel: it is compared with what a simulation says")
        return None
    try:
        path = await _write_comparison(session.jobs.simulations, shown)
    except (GpaError, OSError) as error:
        session.client.inform(f"not compared: {error}")
        return None
    return session.pages.show(path, "")


async def _write_comparison(simulations: Simulations, shown: VisibleKernel) -> Path:
    """The page.

    Raises:
        GpaError: the kernel cannot be simulated, with the reason.
    """
    report, profile = shown.kernel.report, shown.profile
    if not simulations.may_run:
        raise GpaError("the workspace is not trusted, or gpaLsp.emulation.enable is off")
    if report.is_simulated:
        raise GpaError(f"{shown.name} was simulated, and nothing of it was measured")
    file = None if shown.kernel.body is None else profile.files.get(shown.kernel.body[0])
    beside = [str(profile.path)] if file is None else [file.local_path, str(profile.path)]
    launches = next((one for one in map(Path, map(find_description, beside)) if one.is_file()), None)
    if launches is None:
        raise GpaError(explain_undescribed_kernel(shown.name))
    job = ComparisonJob(
        profile=profile.path,
        kernel=report.mangled_name,
        launches=launches,
        page=simulations.name_file(profile.path, "comparison.html", report.mangled_name),
        simulated=simulations.name_file(profile.path, "comparison.gpa-profile.json", report.mangled_name),
        machine=simulations.settings.emulation_machine,
        seconds=ASKED_S,
        memory_bytes=simulations.settings.emulation_memory_bytes,
    )
    work = simulations.do_beside(job, limit_s=job.most_s, title=f"Simulating {profile.path.name}")
    result = await work or ComparisonResult(failure="it was cancelled")
    if result.failure:
        raise GpaError(word_remedy(result.failure))
    return job.page


COMMANDS = {
    "gpaLsp.describeLaunch": describe_launch,
    "gpaLsp.showPrediction": show_prediction,
    "gpaLsp.showStatics": show_statics,
    "gpaLsp.showTimes": show_times,
    "gpaLsp.simulate": simulate,
    "gpaLsp.compareSimulated": compare_simulated,
}
