"""The real server over the wire: a described source is opened, its description edited and broken, a launch described; no trust, no run."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient
from tests.patience import LIMIT_S, set_limits, wait_until

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void gather(const float* x, float* y)
{
    y[threadIdx.x] = x[threadIdx.x * 8];
}
__global__ void lone(float* x) { x[threadIdx.x] = 1; }
"""
DESCRIPTION = """\
[[launch]]
kernel = "gather"
block = 64
grid = 1
arguments = [
  { name = "x", type = "float", count = 512 },
  { name = "y", type = "float", count = 64 },
]
"""
OPTIONS = {
    "static": {"enable": True},
    "emulation": {"enable": True},
}


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[RawClient]:
    made = RawClient(environment=set_limits(**{"exploration_s": LIMIT_S, **getattr(request, "param", {})}))
    yield made
    made.kill()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "wörk" / "k.cu"
    path.parent.mkdir()
    path.write_text(SOURCE)
    path.with_name("k.launch.toml").write_text(DESCRIPTION)
    return path


def start(
    client: RawClient, source: Path, options: Mapping[str, Any] = MappingProxyType({}), **client_says: Any
) -> str:
    capabilities = {**ALL_CAPABILITIES, "workspace": {**ALL_CAPABILITIES["workspace"], **EDITS}}
    sent = {**OPTIONS, **options, "client": client_says}
    client.initialize(source.parent, capabilities, initializationOptions=sent)
    return client.open(source)


EDITS = {"applyEdit": True, "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create"]}}


def wait_for(client: RawClient, uri: str, is_it: Any) -> Any:
    found = client.wait_for_diagnostics(uri, lambda found: any(is_it(one) for one in found))
    return [one for one in found if is_it(one)]


def is_emulated(diagnostic: Any) -> bool:
    return str(diagnostic["code"]).startswith("emulated")


def test_a_described_source_from_opening_to_a_broken_description(client: RawClient, source: Path) -> None:
    uri = start(client, source)
    found = client.wait_for_diagnostics(uri, lambda found: any(is_emulated(one) for one in found))
    (access,) = [one for one in found if one["range"]["start"]["line"] == 2]
    assert access["code"] == "emulated uncoalesced", "what was counted is not also said without a count"
    assert access["severity"] == 3
    titles = [title for line, title in client.lenses(uri) if line == 1]
    assert len(titles) == 2 and titles[0].endswith("· static")
    assert titles[1].startswith("predicted: ") and "emulated" not in titles[1]
    hover = client.read_hover(uri, 3)
    assert "**Emulated** · `gather`" in hover and "loads of `x`: 32 sectors per request" in hover

    text = client.execute("gpaLsp.showPrediction", uri, 0)
    assert text.startswith("# Predictions for k.cu")
    page = client.execute("gpaLsp.showPrediction", uri, 0, "page")
    assert page["uri"].endswith(".html") and page["place"] == "#k0"

    description = source.with_name("k.launch.toml")
    described = client.open(description)
    client.change(described, 2, DESCRIPTION.replace("count = 64", "count = 63"))  # unsaved
    (fault,) = wait_for(client, uri, lambda one: one["code"] == "emulated out-of-bounds-access")
    assert fault["severity"] == 2
    client.forget()
    client.change(described, 3, DESCRIPTION.replace("grid = 1", "grid = oops"))
    (broken,) = wait_for(client, described, is_emulated)
    assert (broken["severity"], broken["range"]["start"]["line"]) == (2, 3)
    (pointer,) = wait_for(client, uri, lambda one: one["code"] == "emulated launch")
    assert pointer["relatedInformation"][0]["location"]["uri"] == described
    client.forget()
    client.close(described)
    (again,) = wait_for(client, uri, lambda one: one["code"] == "emulated uncoalesced")
    assert again["range"] == access["range"]
    assert client.shut_down() == 0


def test_a_launch_is_described_where_there_is_none(client: RawClient, source: Path) -> None:
    uri = start(client, source)
    wait_for(client, uri, is_emulated)
    (action,) = client.actions(uri, 5, "Describe")
    assert action["title"] == "Describe a launch of lone"
    assert client.request("codeAction/resolve", action) == action, "some clients run what this answers"
    client.replies["workspace/applyEdit"] = lambda params: {"applied": True}
    text = client.execute(action["command"]["command"], *action["command"]["arguments"])
    assert 'kernel = "lone"' in text
    changes = client.wait_for_request("workspace/applyEdit")["edit"]["changes"]
    ((changed, (insertion,)),) = changes.items()
    assert changed == source.with_name("k.launch.toml").as_uri()
    assert insertion["range"]["start"] == {"line": DESCRIPTION.count("\n"), "character": 0}
    assert insertion["newText"] == f"\n{text}"


PAIRS = """\
__global__ void forces(const float* x, float* f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += x[j] - x[i];
    f[i] = sum;
}
"""
BUDGET_S = 5.0
"""Of the editor; work that grows with the square of 65,536 may take longer, and is then described smaller."""


@pytest.mark.parametrize("client", [{"emulation_s": BUDGET_S, "exploration_s": 0}], indirect=True)
def test_a_launch_that_is_described_runs_within_the_budget_on_the_gpu_of_the_workspace(
    client: RawClient, source: Path
) -> None:
    """The only report here is of another program, recorded on an RTX 5090: that is the GPU."""
    source.with_name("k.launch.toml").unlink()
    source.write_text(PAIRS)
    report = {
        "format": "gpa-lsp/profile/1",
        "modules": [],
        "launches": [
            {
                "kernel": "other",
                "grid": [1, 1, 1],
                "block": [32, 1, 1],
                "duration_ns": 1000,
                "device": {"name": "NVIDIA GeForce RTX 5090", "compute_capability": "12.0", "sm_count": 170},
                "samples": [],
            }
        ],
    }
    (source.parent / "run.gpa-profile.json").write_text(json.dumps(report))
    uri = start(client, source)
    wait_until(lambda: client.titles(uri), client.messages)
    client.replies["workspace/applyEdit"] = lambda params: {"applied": True}
    text = client.execute("gpaLsp.describeLaunch", uri, "_Z6forcesPKfPfi")
    assert text is not None, (client.messages(), client.errors[-1500:])
    source.with_name("k.launch.toml").write_text(text)
    client.save(uri)
    wait_until(lambda: find_predicted(client, uri), client.messages)
    (title,) = find_predicted(client, uri)
    assert title.startswith("predicted: ") and "emulated" not in title, (title, text)
    page = client.execute("gpaLsp.showPrediction", uri, 0)
    assert "RTX 5090" in page and "A100" not in page, page


def test_sizes_that_nothing_says_are_asked_for(client: RawClient, source: Path) -> None:
    """One line, which begins with what is guessed; closed, nothing is described."""
    uri = start(client, source, typing=True)
    wait_for(client, uri, is_emulated)
    asked: list[Any] = []
    answers: list[str | None] = [None, "threads = 96", "rows = 3"]
    client.replies["gpaLsp/askForText"] = lambda params: asked.append(params) or answers.pop(0)
    client.replies["workspace/applyEdit"] = lambda params: {"applied": True}
    assert client.execute("gpaLsp.describeLaunch", uri, "_Z4lonePf") is None
    assert asked[0]["value"].startswith("threads = ") and "How large is a launch of lone?" in asked[0]["text"]
    assert "threads = 96  # as told" in client.execute("gpaLsp.describeLaunch", uri, "_Z4lonePf")
    assert client.execute("gpaLsp.describeLaunch", uri, "_Z4lonePf") is None
    assert any("no size is called rows; there are threads" in text for text in client.messages()), client.messages()
    assert len(asked) == 3


def find_predicted(client: RawClient, uri: str) -> list[str]:
    return [one for one in client.titles(uri) if one.startswith("predicted: ")]


def test_nothing_is_emulated_without_trust(client: RawClient, source: Path) -> None:
    uri = start(client, source, trusted=False)
    assert client.ask("codeLens", uri) is None
    assert client.execute("gpaLsp.showPrediction", uri, 0) is None
    assert client.execute("gpaLsp.describeLaunch", uri, "_Z4lonePf") is None
    client.execute("gpaLsp.setTrust", True)
    wait_for(client, uri, is_emulated)
    client.forget()
    client.execute("gpaLsp.setTrust", False)
    client.wait_for_diagnostics(uri, lambda found: found == [])
