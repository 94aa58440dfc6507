"""Predictions made by hand, and views of them."""

from dataclasses import replace
from pathlib import Path

from pygls.workspace import PositionCodec

from gpa_lsp.lsp.abilities import Abilities
from gpa_lsp.lsp.document_view import DocumentView, build_view
from gpa_lsp.lsp.places import PlaceFinder
from gpa_lsp.lsp.predicted_results import (
    PredictedAccess,
    PredictedBranch,
    PredictedFault,
    PredictedJob,
    PredictedLaunch,
    PredictedResult,
    PredictedTrial,
)
from gpa_lsp.lsp.predicted_view import PredictedState, make_state
from gpa_lsp.lsp.session import Snapshot
from gpa_lsp.lsp.settings import Settings
from gpa_lsp.lsp.static_view import StaticState

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
    words="predicted: DRAM limits · emulated 16 of 16 blocks",
    what="block 64, all 16 blocks, predicted for the A100",
    described_line=1,
)
ACCESS = PredictedAccess(
    line=5,
    launch=0,
    kind="stores",
    space="global",
    arrays=("x",),
    requests=32,
    lanes_per_request=16.0,
    lines_per_request=8.0,
    sectors_per_request=16.0,
    ideal_sectors_per_request=2.0,
    wavefronts_per_request=0.0,
    ideal_wavefronts_per_request=0.0,
    share_ratio=0.8,
    pattern="strided by 64 bytes",
    remedy="Exchange the indices.",
    l1_hit_ratio=0.5,
    l2_hit_ratio=None,
    repeated_ratio=0.0,
    reuse=(("within 7 lines", 0.75), ("first use", 0.25)),
    is_nested=False,
)
FINE = replace(
    ACCESS, line=6, kind="loads", sectors_per_request=4.0, ideal_sectors_per_request=4.0, share_ratio=0.2, remedy=""
)
SHARED = replace(
    ACCESS,
    line=6,
    space="shared",
    arrays=(),
    sectors_per_request=0.0,
    ideal_sectors_per_request=0.0,
    wavefronts_per_request=4.0,
    ideal_wavefronts_per_request=1.0,
    share_ratio=None,
    pattern="",
    remedy="",
    l1_hit_ratio=None,
    reuse=(),
)
BRANCH = PredictedBranch(
    line=5, launch=0, executions=32, divergent_ratio=0.5, lanes_per_execution=32.0, is_nested=False
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
    found = build_view(
        snapshot or Snapshot(),
        uri=path.as_uri(),
        local_path=str(path),
        text=text,
        saved={None: text},
        units=PositionCodec(),
        settings=Settings(**settings),  # type: ignore[arg-type]
        abilities=Abilities(),
        places=PlaceFinder(PositionCodec(), lambda path: None),
        state=statics,
        predicted=result if isinstance(result, PredictedState) else make_state(result),
    )
    assert found is not None
    return found
