"""Snapshots and views made from listings a reader can see, without a server."""

from collections.abc import Sequence
from pathlib import Path

from pygls.workspace import PositionCodec

from gpa_lsp.editor.document_view import DocumentView, Knowledge, OpenDocument, build_view
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.settings import Abilities, Settings
from gpa_lsp.editor.snapshot import LoadedProfile, Snapshot, measure_kernel
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile
from gpa_lsp.report.model import KernelReport
from tests.report_builder import build_kernel

SOURCE = """\
// saxpy.cu
__global__ void saxpy(float *x, float *y)
{
    int i = threadIdx.x;
    y[i] = 2 * x[i] + y[i];
    y[i] = scale(y[i]);
}
"""

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=10 wait=10/5
    saxpy.cu:5                      LDG.E R2, [R4.64]       ; long_scoreboard=60/50 selected=4
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; wait=12/6 long_scoreboard=3
    saxpy.cu:7                      EXIT                    ; selected=1
"""

CAUSED_LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=10
    saxpy.cu:5                      LDG.E R2, [R4.64]       ; lg_throttle=20 selected=4
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; long_scoreboard=60/50
    saxpy.cu:7                      EXIT                    ; wait=6
"""
_CAUSED_BLAME = """
    2 <- 1   long_scoreboard   memory_global R2 8c 1i
    3 <- 2   wait              execution_arithmetic 4c 1i
"""
_CAUSED_ADVICE = """
    code_reordering code 1.5x 1.3-1.7 <=2
        title: Move loads earlier
        hint: Load `x[i]` before the loop.
        caveat: Needs a register.
        region loop 0 1.4x to=7
            2 <- 1   long_scoreboard
"""
CAUSED = build_kernel(
    CAUSED_LISTING,
    name="saxpy(float*, float*)",
    mangled_name="_Z5saxpyPfS_",
    blame=_CAUSED_BLAME,
    advice=_CAUSED_ADVICE,
)
"""A load that line 6 waits for, and advice on it."""


def make_profile(
    *kernels: KernelReport,
    path: str = "profile.ncu-rep",
    texts: dict[str, str | None] | None = None,
    folder: str = "/project",
    saved_since: bool = False,
    modified_ns: int = 0,
) -> LoadedProfile:
    """A loaded profile whose sources lie in ``folder`` under the names they were compiled as."""
    texts = {"saxpy.cu": SOURCE} if texts is None else texts
    files = {
        name: MeasuredFile(
            compiled_path=name,
            local_path=f"{folder}/{name}",
            lines=None if text is None else split_lines(text),
            is_verified=not saved_since,
        )
        for name, text in texts.items()
    }
    measured = tuple(measure_kernel(kernel, modified_ns) for kernel in kernels)
    return LoadedProfile(path=Path(path), files=files, kernels=measured)


def make_snapshot(*profiles: LoadedProfile) -> Snapshot:
    snapshot = Snapshot()
    for profile in profiles:
        snapshot = snapshot.with_profiles([profile])
    return snapshot


def make_view(
    profiles: LoadedProfile | Sequence[LoadedProfile],
    text: str = SOURCE,
    *,
    path: str = "/project/saxpy.cu",
    settings: Settings | None = None,
    abilities: Abilities | None = None,
    opened: str | None = None,
) -> DocumentView | None:
    snapshot = make_snapshot(*([profiles] if isinstance(profiles, LoadedProfile) else profiles))
    saved = {None: text if opened is None else opened}
    document = OpenDocument(uri=f"file://{path}", local_path=path, text=text, saved=saved)
    return build_view(document, make_knowledge(snapshot, settings, abilities))


def make_knowledge(
    snapshot: Snapshot | None = None, settings: Settings | None = None, abilities: Abilities | None = None
) -> Knowledge:
    return Knowledge(
        snapshot=snapshot or Snapshot(),
        settings=settings or Settings(),
        abilities=abilities or Abilities(),
        units=PositionCodec(),
        places=PlaceFinder(PositionCodec(), lambda local_path: None),
    )
