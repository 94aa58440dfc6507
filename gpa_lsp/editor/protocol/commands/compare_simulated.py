"""``gpaLsp.compareSimulated``: a measured kernel beside the same as it is simulated, as a page of HTML."""

from pathlib import Path

from gpa_lsp.editor.jobs.background_job import find_description
from gpa_lsp.editor.jobs.simulated import ASKED_S, Simulations, word_remedy
from gpa_lsp.editor.predicted.actions import explain_undescribed_kernel
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import find_mangled
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.simulated.results import ComparisonJob, ComparisonResult
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.errors import GpaError


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
        path = await _write_page(session.jobs.simulations, shown)
    except (GpaError, OSError) as error:
        session.client.inform(f"not compared: {error}")
        return None
    return session.pages.show(path, "")


async def _write_page(simulations: Simulations, shown: VisibleKernel) -> Path:
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


COMMAND = Command(name="gpaLsp.compareSimulated", run=compare_simulated)
