"""Literate cases: Markdown files in which prose surrounds kernels and what is expected of them.

A case is a fence ``sass`` with a kernel in the notation of :mod:`tests.rows.written` (:mod:`tests.cases.repeats` may shorten it), and fences of
expectations behind it; the next ``sass`` of the file begins another case::

    ```sass compute_capability=7.0
    B-:R-:W0:-:S02  LDG.E R0, [R2.64]     # selected=4
    B0:R-:W-:-:S04  IADD3 R6, R0, R5, RZ  # long_scoreboard=10
    ```

    ```blame
    paper  0x0010 IADD3 <- 0x0000 LDG  long_scoreboard=10/10  MEMORY_GLOBAL  READ_AFTER_WRITE R0  1 instruction, 2 cycles
    ```

Words behind ``sass`` are options of ``write_kernel``: whole numbers, numbers with commas or dots between them, or words. Before a kernel may stand

* ``cuda FILE``, the source with that name, from its line 1; it holds for later kernels, too, until the file is given again;
* ``metrics``, a line ``name = number`` for each aggregate of the next kernel's launch.

A fence of another kind is checked by the module of this folder that is named after it: ``blame_fence.py`` defines ``check_blame``, which is given
the kernel, what the default blamer says about it, and the fence's text. Kinds without a module are prose.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.model import Kernel
from tests.cases.repeats import expand_repeats
from tests.rows.written import write_kernel

FOLDER = Path(__file__).parent
_NUMBER = re.compile(r"[-+.\deE]+")
_FENCE = re.compile(r"^```(?P<kind>\w+)(?P<words>[^\n]*)\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_KERNEL, _SOURCE, _METRICS = "sass", "cuda", "metrics"
# Kinds of fences that say what the kernel is; all others say something about it.
DESCRIBING = (_KERNEL, _SOURCE, _METRICS)

Check = Callable[[Kernel, KernelBlame, str], None]


@dataclass(frozen=True)
class Fence:
    """One fenced block: its kind, the words behind it, its text, and the line of the file it starts on."""

    kind: str
    words: tuple[str, ...]
    text: str
    line: int


@dataclass(frozen=True)
class Case:
    """One kernel of a Markdown file: its own fence, what is expected of it, and what was said before about its sources and its launch."""

    path: Path
    fences: tuple[Fence, ...]
    sources: Mapping[str, str]
    metrics: Mapping[str, float | str]

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel of its ``sass`` fence."""
        (fence,) = (one for one in self.fences if one.kind == _KERNEL)
        options = dict(_read_options(fence.words))
        return write_kernel(expand_repeats(fence.text), metrics=self.metrics, sources=self.sources, **options)

    def check(self, fence: Fence) -> None:
        """Compare what one of its fences expects with what is found."""
        find_checks()[fence.kind](self.kernel, blame_kernel(self.kernel), fence.text)


@cache
def find_checks() -> dict[str, Check]:
    """Kind of fence → its check, for the modules of this folder."""
    kinds = sorted(path.stem.removesuffix("_fence") for path in FOLDER.glob("*_fence.py"))
    return {kind: getattr(importlib.import_module(f"tests.cases.{kind}_fence"), f"check_{kind}") for kind in kinds}


def read_cases(path: Path) -> list[Case]:
    """The cases of one file, in their order.

    Raises:
        ValueError: a metric is none, or there is an expectation before the first kernel.
    """
    text = path.read_text(encoding="utf-8")
    cases: list[Case] = []
    sources: dict[str, str] = {}
    metrics: dict[str, float | str] = {}
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        fence = Fence(found["kind"], tuple(found["words"].split()), found["text"], line)
        if fence.kind == _SOURCE:
            sources[fence.words[0]] = fence.text
        elif fence.kind == _METRICS:
            metrics.update(_read_metrics(fence.text))
        elif fence.kind == _KERNEL:
            cases.append(Case(path, (fence,), dict(sources), metrics))
            metrics = {}
        elif cases:
            cases[-1] = replace(cases[-1], fences=(*cases[-1].fences, fence))
        elif fence.kind in find_checks():
            raise ValueError(f"{path.name}, line {line}: nothing is known yet of which this could be expected")
    return cases


def list_cases() -> list[Case]:
    """All cases of this folder."""
    return [case for path in sorted(FOLDER.glob("*.md")) for case in read_cases(path)]


def _read_metrics(text: str) -> Iterator[tuple[str, float | str]]:
    for line in text.splitlines():
        if line.strip():
            name, _, value = line.partition("=")
            yield name.strip(), float(value) if _NUMBER.fullmatch(value.strip()) else value.strip()


def _read_options(words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for word in words:
        name, _, value = word.partition("=")
        if re.fullmatch(r"\d+", value):
            yield name, int(value)
        elif re.fullmatch(r"\d+(?:[.,]\d+)+", value):
            yield name, tuple(int(part) for part in re.split("[.,]", value))
        else:
            yield name, value
