"""Predictions made by hand, and views of them."""

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.editor.document_view import DocumentView, OpenDocument, build_view
from gpa_lsp.editor.predicted.results import (
    Fact,
    LaunchFact,
    PredictedFault,
    PredictedJob,
    PredictedLaunch,
    PredictedResult,
    PredictedTrial,
)
from gpa_lsp.editor.predicted.view import PredictedState, make_state
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.editor.static.view import StaticState
from gpa_lsp.execution.accesses.lane_addresses import LanePattern
from gpa_lsp.execution.traces.data_centric import PatternShare
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.reuse_distance import INFINITE_BIN, ReuseHistogram
from tests.editor.views import make_knowledge

SOURCE = Path("/project/k.cu")
DESCRIPTION = Path("/project/k.launch.toml")
TEXT = """\
// k.cu
__global__ void scale(float* x, int n)
{
    int i = threadIdx.x;
    if (i % 2) x[8 * i] = 1;
    tile[i] = x[i];
}
"""
TOML = """\
[[launch]]
kernel = "scale"
block = 64  # threads
threads = 1024
"""
NAME = "_Z5scalePfi"

JOB = PredictedJob(
    path=SOURCE,
    text=TEXT,
    launches_path=DESCRIPTION,
    launches_text=TOML,
    roots=(SOURCE.parent,),
    architecture=None,
    machine=None,
    limit_s=60.0,
    seconds=5.0,
    memory_bytes=1 << 30,
)
LAUNCH = PredictedLaunch(
    mangled_name=NAME,
    name="scale(float*, int)",
    line=4,
    words="predicted: limited by DRAM · emulated 16 of 16 blocks",
    what="block 64, all 16 blocks, predicted for the A100",
    described_line=1,
)
BINS = np.zeros(34, dtype=np.int64)
BINS[2], BINS[INFINITE_BIN] = 3, 1
ACCESS = LaunchFact(
    launch=0,
    fact=AccessLineFact(
        file=str(SOURCE),
        line=5,
        is_nested=False,
        kind=AccessGroupKind.STORES,
        space=Space.GLOBAL,
        origin="emulated",
        arrays=("x",),
        requests=32,
        lanes_per_request=16.0,
        lines_per_request=8.0,
        sectors_per_request=16.0,
        ideal_sectors_per_request=2.0,
        sectors=512,
        share_ratio=0.8,
        patterns=(PatternShare(pattern=LanePattern.STRIDED, requests=32, ratio=1.0),),
        strides_bytes=(64,),
        wavefronts_per_request=0.0,
        ideal_wavefronts_per_request=0.0,
        reuse=ReuseHistogram(bins=BINS, streaming=0, distance_sum=6),
        l1_hit_ratio=0.5,
        l2_hit_ratio=None,
        repeated_ratio=0.0,
    ),
)


def change(found: LaunchFact[Fact], *, launch: int = 0, **changes: object) -> LaunchFact[Fact]:
    """The same with another fact."""
    return LaunchFact(launch=launch, fact=replace(found.fact, **changes))  # type: ignore[type-var]


FINE = change(
    ACCESS,
    line=6,
    kind=AccessGroupKind.LOADS,
    sectors_per_request=4.0,
    ideal_sectors_per_request=4.0,
    share_ratio=0.2,
)
SHARED = change(
    ACCESS,
    line=6,
    space=Space.SHARED,
    arrays=(),
    sectors_per_request=0.0,
    ideal_sectors_per_request=0.0,
    wavefronts_per_request=4.0,
    ideal_wavefronts_per_request=1.0,
    share_ratio=None,
    patterns=(),
    strides_bytes=(),
    l1_hit_ratio=None,
    reuse=None,
)
BRANCH = LaunchFact(
    launch=0,
    fact=BranchLineFact(
        file=str(SOURCE),
        line=5,
        is_nested=False,
        origin="emulated",
        executions=32,
        divergent=16,
        lanes_per_execution=32.0,
        taken_ratio=0.5,
        one_way="",
    ),
)
RACE = PredictedFault(
    line=6,
    launch=0,
    kind="race on shared memory",
    message="threads 0 and 33 store to the same address.",
    remedy="Put __syncthreads() between the two accesses.",
    is_ending=False,
    other=(str(SOURCE), 5),
)
TRIAL = PredictedTrial(
    launch=0,
    words="try block 128: predicted −31 % DRAM traffic, 1.25× as fast",
    line=3,
    old="block = 64  # threads",
    start=8,
    end=10,
    new="128",
)
RESULT = PredictedResult(
    job=JOB,
    launches=(LAUNCH,),
    accesses=(ACCESS, SHARED, FINE),
    branches=(BRANCH,),
    faults=(RACE,),
    page="# Predictions for k.cu\n",
)


def view(
    result: PredictedResult | PredictedState = RESULT,
    text: str | None = None,
    *,
    path: Path = SOURCE,
    snapshot: Snapshot | None = None,
    statics: StaticState | None = None,
    **settings: object,
) -> DocumentView:
    """The view of the source, or of the description."""
    text = (TEXT if path == SOURCE else TOML) if text is None else text
    document = OpenDocument(
        uri=path.as_uri(),
        local_path=str(path),
        text=text,
        saved={None: text},
        statics=statics,
        predicted=result if isinstance(result, PredictedState) else make_state(result),
    )
    found = build_view(document, make_knowledge(snapshot, Settings(**settings)))  # type: ignore[arg-type]
    assert found is not None
    return found
