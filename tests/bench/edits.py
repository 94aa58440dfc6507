"""Edits of kernels with known effect: the families of ``fixtures/edits``, simulated before and after on several GPUs.

Each file is one family: versions of one kernel, chosen by ``VERSION``, with their launches and remedies in the comment at its head. An edit leads
from one version to another; what it gains is simulated time before by simulated time after, and what is advised is what the advisor says of the
simulated profile of the version before. Where nvcc is at hand, leaving out ``-G`` in the first version of each family is an edit, too.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli

from gpa_lsp import api
from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, DEBUG_BUILD, Advice, Standing
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import Simulation, SimulationSettings, simulate_code
from gpa_lsp.execution.simulator.profile_document import make_document
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.gpu.device.products import find_product
from gpa_lsp.report.model import KernelReport

FOLDER = Path(__file__).parents[2] / "fixtures" / "edits"
MACHINES = ("T4", "A100 PCIe 40GB", "RTX 3080", "H100 PCIe")

_EXECUTIONS = 3_000_000
_DEBUG = -1  # The number of the first version compiled with -G
_DEBUG_INSTRUCTIONS = 4  # Times as many in a debug build, at most


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a family's kernel.

    Attributes:
        edit: names of the optimizers that advise the edit leading here; empty where none should.
        before: the versions that it is made from; none of the first.
        block, grid: expressions of the size.
    """

    edit: tuple[str, ...]
    before: tuple[int, ...]
    block: tuple[str, ...]
    grid: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Versions of one kernel."""

    name: str
    kernel: str
    source: str
    sizes: tuple[dict[str, int], ...]
    arguments: tuple[str, ...]
    versions: tuple[Version, ...]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One edit at one size on one GPU.

    Attributes:
        before, after: the versions as they were simulated, and what the advisor says of them.
    """

    family: str
    size: dict[str, int]
    machine: str
    start: int
    end: int
    remedies: tuple[str, ...]
    before: KernelReport
    after: KernelReport

    @property
    def achieved(self) -> float:
        """Time before by time after."""
        assert self.before.duration_ns is not None and self.after.duration_ns is not None  # they were simulated
        return self.before.duration_ns / self.after.duration_ns

    @property
    def name(self) -> str:
        """Family, versions, size and GPU."""
        sizes = ",".join(f"{key}={value}" for key, value in self.size.items())
        return f"{self.family} {_name_version(self.start)}→{self.end} {sizes} {self.machine}"

    @property
    def is_at_the_limit(self) -> bool:
        """Whether the version before is said to be as fast as the GPU lets it be."""
        return self.before.advice is not None and any(
            one.optimizer == AT_THE_LIMIT for one in self.before.advice.advice
        )

    def list_advice(self) -> tuple[Advice, ...]:
        """Advice worth following, in the kernel or outside of it, best first."""
        found = () if self.before.advice is None else self.before.advice.advice
        return tuple(one for one in found if one.standing not in (Standing.SMALL, Standing.NOTHING))


def read_families(wanted: str = "") -> tuple[Family, ...]:
    """The families whose name holds a text."""
    return tuple(_read_family(path) for path in sorted(FOLDER.glob("*.cu")) if wanted in path.stem)


def _read_family(path: Path) -> Family:
    text = path.read_text(encoding="utf-8")
    head = tomli.loads(text[text.index("/*") + 2 : text.index("*/")])
    versions = [
        Version(
            edit=tuple(one.get("edit", ())),
            before=_read_numbers(one.get("from", index - 1)) if index else (),
            block=tuple(one["block"]),
            grid=tuple(one["grid"]),
        )
        for index, one in enumerate(head["version"])
    ]
    return Family(
        name=path.stem,
        kernel=head["kernel"],
        source=text,
        sizes=tuple({**head.get("values", {}), **size} for size in head["sizes"]),
        arguments=tuple(head["arguments"]),
        versions=tuple(versions),
    )


def _read_numbers(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def simulate_version(family: Family, index: int, size: dict[str, int], machine: str, folder: Path) -> Path:
    """The profile of a simulated launch, in a folder where it is taken from if it is there.

    Raises:
        GpaError: it cannot be simulated.
    """
    sizes = "_".join(f"{key}{value}" for key, value in size.items())
    number, version = (0, "debug_0") if index == _DEBUG else (index, f"version_{index}")
    stem = folder / machine.replace(" ", "_") / f"{family.name}_{sizes}" / version
    source, launches, profile = (stem.with_suffix(suffix) for suffix in (".cu", ".launch.toml", ".gpa-profile.json"))
    text, described = (
        f"#define VERSION {number}\n#line 1\n{family.source}",
        _describe_launch(family, family.versions[number], size),
    )
    is_same = (
        profile.exists()
        and source.read_text(encoding="utf-8") == text
        and launches.read_text(encoding="utf-8") == described
    )
    if is_same:
        return profile
    stem.parent.mkdir(parents=True, exist_ok=True)
    profile.unlink(missing_ok=True)
    source.write_text(text, encoding="utf-8")
    launches.write_text(described, encoding="utf-8")
    found = _simulate(source, launches, machine, is_debug=index == _DEBUG)
    if not found.launches:
        raise GpaError("; ".join(one.message for one in found.problems) or "nothing was simulated")
    profile.write_text(json.dumps(make_document(found.launches, found.problems)), encoding="utf-8")
    return profile


def _simulate(source: Path, launches: Path, machine: str, *, is_debug: bool) -> Simulation:
    settings = SimulationSettings(machine=machine, executions=_EXECUTIONS * (_DEBUG_INSTRUCTIONS if is_debug else 1))
    if not is_debug:
        return simulate_code(source, launches=LaunchChoice(path=launches), settings=settings)
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise GpaError("it is not compiled with -G: there is no nvcc")
    built = source.with_suffix(".fatbin")
    major, minor = find_product(machine).compute_capability
    command = [nvcc, "-G", f"-arch=sm_{major}{minor}", "-fatbin", "-o", str(built), str(source)]
    if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        raise GpaError("it cannot be compiled with -G")
    return simulate_code(built, launches=LaunchChoice(path=launches), settings=settings)


def simulate_edits(family: Family, size: dict[str, int], machine: str, folder: Path) -> Iterator[Edit | str]:
    """The edits of a family at one size on one GPU, and leaving out -G in its first version; of one that cannot be simulated, why."""
    kernels: dict[int, KernelReport] = {}
    for index in (*range(len(family.versions)), _DEBUG):
        try:
            profile = simulate_version(family, index, size, machine, folder)
            kernels[index] = api.load(profile, sources=[profile.parent]).kernels[0]
        except GpaError as error:
            yield f"{family.name} {_name_version(index)} {size} {machine}: {error}"
    edits = [(start, index, one.edit) for index, one in enumerate(family.versions) for start in one.before]
    for start, end, remedies in (*edits, (_DEBUG, 0, (DEBUG_BUILD,))):
        if start in kernels and end in kernels:
            yield Edit(
                family=family.name,
                size=size,
                machine=machine,
                start=start,
                end=end,
                remedies=remedies,
                before=kernels[start],
                after=kernels[end],
            )


def _name_version(index: int) -> str:
    return "-G" if index == _DEBUG else str(index)


def _describe_launch(family: Family, version: Version, size: dict[str, int]) -> str:
    lines = ["[[launch]]", f"kernel = {json.dumps(family.kernel)}"]
    lines += [
        f"{name} = {[max(1, _evaluate(one, size)) for one in values]}"
        for name, values in (("grid", version.grid), ("block", version.block))
    ]
    lines += ["arguments = [", *(f"  {{ {_describe_argument(one, size)} }}," for one in family.arguments), "]", ""]
    return "\n".join(lines)


def _describe_argument(text: str, size: dict[str, int]) -> str:
    """An argument of a family, such as ``in float[n + 8] uniform 0 1``, ``out float[n]`` or ``n``, in a description of launches."""
    found = re.fullmatch(r"(\w+)(?: (\w+)\[(.+)\])?(?: uniform(?: (\S+) (\S+))?)?", text)
    assert found is not None, text
    name, kind, count, low, high = found.groups()
    if kind is None:
        return f'name = "{name}", type = "int", value = {size[name]}'
    described = f'name = "{name}", type = "{kind}", count = {_evaluate(count, size)}'
    if " uniform" in text:
        described += f', fill = "uniform", low = {low or 0}, high = {high or 1}'
    return described


def _evaluate(expression: str, size: dict[str, int]) -> int:
    """An expression of whole numbers, such as ``n * n / 32``; divisions round down."""
    return int(eval(expression.replace("/", "//"), {"__builtins__": {}}, dict(size)))


def list_cases(families: Sequence[Family], machines: Sequence[str]) -> Iterator[tuple[Family, dict[str, int], str]]:
    """Every family at every size on every GPU."""
    return ((family, size, machine) for family in families for machine in machines for size in family.sizes)
