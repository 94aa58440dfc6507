"""The real server over the wire: a described launch is simulated on save and when asked for, marked, and gives way to what was measured."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from tests.lsp.raw_client import ALL_CAPABILITIES, WHOLE, RawClient

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void gather(const float* x, float* y)
{
    y[blockIdx.x * 64 + threadIdx.x] = x[(blockIdx.x * 64 + threadIdx.x) * 8];
}
"""
HOST = """\
int main()
{
    float *x, *y;
    cudaMalloc(&x, 4096 * sizeof(float));
    cudaMalloc(&y, 512 * sizeof(float));
    gather<<<8, 64>>>(x, y);
}
"""
DESCRIPTION = """\
[[launch]]
kernel = "gather"
block = 64
grid = 8
arguments = [
  { name = "x", type = "float", count = 4096 },
  { name = "y", type = "float", count = 512 },
]
"""
LINE = 2


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "wörk" / "k.cu"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def start(client: RawClient, source: Path, *, on_save: bool = True, **client_says: Any) -> str:
    options = {
        "static": {"enable": True},
        "emulation": {"enable": True},
        "simulation": {"onSave": on_save},
        "client": {"heat": True, **client_says},
    }
    client.initialize(source.parent, ALL_CAPABILITIES, initializationOptions=options)
    return client.open(source)


def describe(source: Path) -> None:
    source.with_name("k.launch.toml").write_text(DESCRIPTION)


def wait_for_static(client: RawClient, uri: str) -> None:
    client.wait_for_diagnostics(uri, lambda found: any(str(one["code"]).startswith("emulated") for one in found))


def test_a_save_simulates_and_every_view_says_so(client: RawClient, source: Path) -> None:
    describe(source)
    uri = start(client, source)
    wait_for_static(client, uri)
    client.save(uri)
    heat = client.wait_for_heat(uri)
    assert LINE in heat["simulated"] and heat["unverified"] == []
    titles = client.titles(uri)
    assert any("gather · " in one and "s simulated" in one for one in titles), titles
    hints = client.ask("inlayHint", uri, range=WHOLE)
    labels = [
        one["label"] if isinstance(one["label"], str) else "".join(part["value"] for part in one["label"])
        for one in hints
        if "simulated, not measured" in str(one.get("tooltip"))
    ]
    assert labels and all(one.endswith(", simulated") and len(one) <= 43 for one in labels), labels
    assert "simulated, not measured" in client.read_hover(uri, LINE + 1)
    assert "sectors per access" in client.execute("gpaLsp.showLine", uri, LINE)
    assert "simulated" in client.ask("documentSymbol", uri)[0]["detail"]
    assert client.shut_down() == 0


def test_where_saves_do_not_simulate_the_action_does(client: RawClient, source: Path) -> None:
    describe(source)
    uri = start(client, source, on_save=False)
    wait_for_static(client, uri)
    client.save(uri)
    (action,) = client.actions(uri, 1, "Simulate")
    assert action["title"] == "Simulate the described launches of gather"
    assert client.execute(action["command"]["command"], *action["command"]["arguments"]) is True
    said = client.wait_for_message("gather on")
    assert "simulated gather on" in said and "(simulated)" in said
    assert LINE in client.wait_for_heat(uri)["simulated"]


def test_a_launch_that_host_code_says_needs_no_description(client: RawClient, source: Path) -> None:
    source.write_text(SOURCE + HOST)
    uri = start(client, source)
    client.wait_for_diagnostics(uri)
    client.save(uri)
    (action,) = client.actions(uri, 1, "Simulate")
    assert action["title"] == "Simulate a launch of gather"
    assert client.execute(action["command"]["command"], *action["command"]["arguments"]) is True
    assert LINE in client.wait_for_heat(uri)["simulated"]


def test_nothing_is_simulated_without_trust(client: RawClient, source: Path) -> None:
    describe(source)
    uri = start(client, source, trusted=False)
    client.save(uri)
    assert client.actions(uri, 1, "Simulate") == []
    assert client.execute("gpaLsp.simulate", uri) is False
    client.wait_for_message("nothing is simulated")


def measure(source: Path) -> None:
    """A profile of the described launch, beside its source; its samples are a simulation's, which it does not say."""
    from gpa_lsp.execution.prediction.simulation import simulate_code
    from gpa_lsp.execution.simulator.profile_document import make_document

    describe(source)
    measured = make_document(simulate_code(source).launches, ())
    for launch in measured["launches"]:
        del launch["sampling"]["is_simulated"]
    (source.parent / "run.gpa-profile.json").write_text(json.dumps(measured))


def test_a_measured_kernel_is_put_beside_its_simulation(client: RawClient, source: Path) -> None:
    measure(source)
    uri = start(client, source, pages=True)
    client.wait_for_heat(uri)
    page = client.execute("gpaLsp.compareSimulated", uri, LINE)
    assert page is not None, client.messages()
    text = Path(unquote(urlparse(page["uri"]).path)).read_text("utf-8")
    assert "gather: measured and simulated" in text and "k.cu:3 on both sides" in text
    assert client.shut_down() == 0


def test_what_cannot_be_compared_says_why(client: RawClient, source: Path) -> None:
    measure(source)
    source.with_name("k.launch.toml").unlink()
    uri = start(client, source, pages=True)
    client.wait_for_heat(uri)
    assert client.execute("gpaLsp.compareSimulated") is None
    client.wait_for_message("put the cursor into a measured kernel")
    assert client.execute("gpaLsp.compareSimulated", uri, LINE) is None
    said = client.wait_for_message("not compared")
    assert "No launch description of gather. Create one: use the code action" in said


def test_nothing_is_compared_without_trust(client: RawClient, source: Path) -> None:
    measure(source)
    uri = start(client, source, trusted=False)
    client.wait_for_heat(uri)
    assert client.execute("gpaLsp.compareSimulated", uri, LINE) is None
    said = client.wait_for_message("not compared")
    assert said.endswith("not compared: the workspace is not trusted, or gpaLsp.emulation.enable is off")


def test_what_was_measured_stays(client: RawClient, source: Path) -> None:
    measure(source)
    uri = start(client, source)
    assert client.wait_for_heat(uri)["simulated"] == []
    client.forget()
    client.save(uri)
    assert client.execute("gpaLsp.simulate", uri) is True
    said = client.wait_for_message("gather on")
    assert said.endswith("; measured numbers stay on the lines")
    titles = client.titles(uri)
    assert not any("simulated" in one for one in titles), titles
