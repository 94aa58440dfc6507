"""``unknowns.md``: profiles of collectors that know little, through every output.

Each section changes the example profile and says what then stands where. A fence ``profile`` is a JSON object with any of ``launch`` (members of
every launch; null takes one away), ``run`` (members of the file) and ``unsplit`` (no count has ``latency``). Each other fence names an output and
holds pieces of text that must occur in it, one a line; a line that begins with ``not:`` must not. The outputs are

* ``text``, ``html``, ``sarif``, ``json``: of ``gpa-lsp report`` and ``check``, made from the report as it was saved and read again;
* ``advice``: ``gpa-lsp advise --details --format markdown``, of the same report;
* ``lens``, ``hover``, ``page``, ``sass``: what the editor is told of the kernel, of its hottest line, of the whole, and the heading of its SASS;
* ``history``: the run as it is remembered; ``compare``: the example with its launches known, held against this one.
"""

import html
import io
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.document.history_view import make_run
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.editor.kernel_page import describe_kernel, describe_kernel_briefly
from gpa_lsp.editor.line_words import build_line
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.profile.read import read_profile
from gpa_lsp.report.history.model import Run
from gpa_lsp.report.history.recording import Surroundings, build_recording
from gpa_lsp.report.history.rows import read_measurement, write_facts
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved.store import read_report, write_report
from tests.conftest import ROOT
from tests.editor.views import make_profile, make_snapshot, make_view
from tests.profile.native_writing import write_native
from tests.render.html_report.test_page import unpack
from tests.report_file.record_schema import read_schema

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"
_KERNEL = "_Z13short_def_usePKfPfii"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VALIDATOR = jsonschema.Draft202012Validator(read_schema())


@dataclass(frozen=True)
class Section:
    """A section of ``unknowns.md``: its title, its changes, and output → lines."""

    title: str
    changes: Mapping[str, Any]
    outputs: Mapping[str, tuple[str, ...]]


@cache
def read_sections() -> dict[str, Section]:
    parts = _SECTION.split(Path(__file__).with_name("unknowns.md").read_text(encoding="utf-8"))
    found = {}
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        fences = dict(_FENCE.findall(text))
        changes = json.loads(fences.pop("profile"))
        lines = {kind: tuple(line for line in body.splitlines() if line) for kind, body in fences.items()}
        found[title] = Section(title, changes, lines)
    return found


def change_example(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The example's first kernel in version 2, changed."""
    document: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    launch = {**document["launches"][0], **changes.get("launch", {})}
    if changes.get("unsplit"):
        for row in launch["samples"]:
            row["by_reason"] = {reason: {"all": count["all"]} for reason, count in row["by_reason"].items()}
    document["launches"] = [{name: value for name, value in launch.items() if value is not None}]
    return {**document, "format": "gpa-lsp/profile/2", **changes.get("run", {})}


class Workshop:
    """Profiles and their reports, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(EXAMPLE.parent / "cubins" / "sm_80", folder / "cubins" / "sm_80")
        self._reports: dict[str, Report] = {}

    def write(self, name: str, document: Mapping[str, Any]) -> Path:
        path = self.folder / f"{name.replace(' ', '_')}.gpa-profile.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def analyse(self, section: Section) -> Report:
        if section.title not in self._reports:
            self._reports[section.title] = analyse([self.write(section.title, change_example(section.changes))])
        return self._reports[section.title]

    def save(self, section: Section) -> Path:
        """The report as JSON, which is as the schema says, and the same when it is read again and written again."""
        path = self.folder / f"{section.title.replace(' ', '_')}.json"
        if not path.exists():
            write_report(self.analyse(section), path)
            _VALIDATOR.validate(json.loads(path.read_text()))
            again = path.with_suffix(".again.json")
            write_report(read_report(path), again)
            assert again.read_text() == path.read_text()
        return path

    def run(self, *words: str) -> str:
        with redirect_stdout(io.StringIO()) as said:
            main(list(words))
        return said.getvalue()


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("unknowns"))


def show_text(workshop: Workshop, section: Section) -> str:
    return workshop.run("report", "--details", str(workshop.save(section)))


def show_html(workshop: Workshop, section: Section) -> str:
    """Text of the page, its packed parts unpacked."""
    page = workshop.run("report", str(workshop.save(section)), "--format", "html")
    parts = [page, *(str(part["html"]) for part in unpack(page))]
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", part) for part in parts))


def show_json(workshop: Workshop, section: Section) -> str:
    """Objects one beside the other: ``"name":value``, as the file has them."""
    return workshop.save(section).read_text()


def show_sarif(workshop: Workshop, section: Section) -> str:
    return json.dumps(json.loads(workshop.run("check", str(workshop.save(section)), "--format", "sarif")))


def show_advice(workshop: Workshop, section: Section) -> str:
    return workshop.run("advise", str(workshop.save(section)), "--details", "--format", "markdown")


def find_kernel(workshop: Workshop, section: Section) -> KernelReport:
    (kernel,) = workshop.analyse(section).kernels
    return kernel


def show_in_editor(workshop: Workshop, section: Section) -> Any:
    kernel = find_kernel(workshop, section)
    file = max((row for row in kernel.lines if row.file), key=lambda row: row.inclusive_samples).file
    assert file is not None
    return make_profile(kernel, texts={file: kernel.embedded_sources[file]}, folder=""), file


def show_lens(workshop: Workshop, section: Section) -> str:
    profile, _ = show_in_editor(workshop, section)
    return describe_kernel_briefly(make_snapshot(profile).visible[0])


def show_page(workshop: Workshop, section: Section) -> str:
    profile, _ = show_in_editor(workshop, section)
    return describe_kernel(make_snapshot(profile).visible[0])


def show_hover(workshop: Workshop, section: Section) -> str:
    profile, file = show_in_editor(workshop, section)
    view = make_view(profile, find_kernel(workshop, section).embedded_sources[file], path=f"/{file}")
    assert view is not None
    hottest = max((lines for lines in view.hot_lines.values()), key=lambda lines: lines[0].row.inclusive_samples)
    return "\n".join(write_markdown([*build_line(hottest)]))


def show_sass(workshop: Workshop, section: Section) -> str:
    profile, _ = show_in_editor(workshop, section)
    document = build_document("gpa-sass:/kernel.sass", make_snapshot(profile).visible[0])
    return " ".join(line.removeprefix("//").strip() for line in document.lines if line.startswith("//"))


def show_history(workshop: Workshop, section: Section) -> str:
    """The run as it comes back from its row."""
    recording = build_recording(
        find_kernel(workshop, section), Surroundings(measured_ns=1, read_ns=1, files={}, body=None)
    )
    before = recording.measurement
    after = read_measurement(before.key, (1, before.profile, before.session), write_facts(before))
    assert after == before
    return json.dumps(make_run(Run(run_id=1, measurement=after, recorded_ns=1, is_baseline=False)))


def show_comparison(workshop: Workshop, section: Section) -> str:
    known = read_sections()["Everything is known"]
    return workshop.run("compare", str(workshop.save(known)), str(workshop.save(section)))


OUTPUTS: dict[str, Callable[[Workshop, Section], str]] = {
    "text": show_text,
    "html": show_html,
    "json": show_json,
    "sarif": show_sarif,
    "advice": show_advice,
    "lens": show_lens,
    "hover": show_hover,
    "page": show_page,
    "sass": show_sass,
    "history": show_history,
    "compare": show_comparison,
}
CASES = [(title, kind) for title, section in read_sections().items() for kind in section.outputs]


@pytest.mark.parametrize(("title", "kind"), CASES)
def test_what_is_unknown_is_said_to_be(workshop: Workshop, title: str, kind: str) -> None:
    section = read_sections()[title]
    text = OUTPUTS[kind](workshop, section)
    for line in section.outputs[kind]:
        word = line.removeprefix("not:").strip()
        assert (word in text) is (not line.startswith("not:")), f"{word!r}\n\n{text[:6000]}"


def test_every_output_is_asked_about_every_kind_of_unknown() -> None:
    kinds = {
        "Which samples were taken without issue",
        "How a kernel was launched",
        "An aggregate",
        "Dropped and foreign samples",
    }
    asked = {title: set(section.outputs) for title, section in read_sections().items()}
    assert kinds <= asked.keys()
    for title in kinds:
        assert {"text", "html", "json", "sarif", "advice", "lens", "page", "sass", "history"} <= asked[title], title


def take_out(text: str, *names: str) -> str:
    """Remove all that names the file."""
    return re.sub("|".join(map(re.escape, names)), "PROFILE", text)


def test_a_profile_of_version_1_gives_the_same_report_in_version_2(workshop: Workshop) -> None:
    first = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    paths = [workshop.write("version 1", first), workshop.folder / "version_2.gpa-profile.json"]
    write_native(read_profile(paths[0]), paths[1])
    assert '"gpa-lsp/profile/2"' in paths[1].read_text()
    texts = []
    for path in paths:
        saved = path.with_suffix(".report.json")
        write_report(analyse([path]), saved)
        texts.append(take_out(saved.read_text(), "version_1", "version_2"))
    assert texts[0] == texts[1]


def test_without_the_split_all_that_does_not_need_it_stays(workshop: Workshop) -> None:
    """Samples, shares, causes, loops, lines, answers: the same; only what is counted or priced by latency samples is unknown."""
    sections = read_sections()
    whole = json.loads(workshop.save(sections["Everything is known"]).read_text())["kernels"][0]
    part = json.loads(workshop.save(sections["Which samples were taken without issue"]).read_text())["kernels"][0]
    for kernel in (whole, part):
        kernel["profile_path"] = None
        for name in ("advice", "advice_silences", "analyses"):
            kernel.pop(name)
    assert forget_latency(whole) == forget_latency(part)
    assert whole != part


def forget_latency(value: Any) -> Any:
    """The same value, with every number of latency samples gone."""
    if isinstance(value, list):
        return [forget_latency(one) for one in value]
    if isinstance(value, dict):
        return {name: forget_latency(one) for name, one in value.items() if "latency" not in name}
    return value
