"""Literate cases: Markdown files in which prose surrounds a kernel and what is expected of it.

A case has one fence ``sass`` with a kernel in the notation of :mod:`tests.kernel.written` (:mod:`tests.cases.repeats` may shorten it), and fences of
expectations behind it::

    ```sass compute_capability=7.0
    B-:R-:W0:-:S02  LDG.E R0, [R2.64]     # selected=4
    B0:R-:W-:-:S04  IADD3 R6, R0, R5, RZ  # long_scoreboard=10
    ```

    ```blame
    paper  0x0010 IADD3 <- 0x0000 LDG  long_scoreboard=10/10  MEMORY_GLOBAL  READ_AFTER_WRITE R0  1 instruction, 2 cycles
    ```

Words behind ``sass`` are options of ``write_kernel``: whole numbers, numbers with commas or dots between them, or words. A fence of another kind is
checked by the module of this folder that is named after it: ``blame_fence.py`` defines ``check_blame``, which is given the kernel, what the
default blamer says about it, and the fence's text. Kinds without a module are prose.
"""

import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from gpa_lsp.blame.blame import blame_kernel
from gpa_lsp.blame.model import KernelBlame
from gpa_lsp.kernel.model import Kernel
from tests.cases.repeats import expand_repeats
from tests.kernel.written import write_kernel

FOLDER = Path(__file__).parent
_FENCE = re.compile(r"^```(?P<kind>\w+)(?P<words>[^\n]*)\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_KERNEL = "sass"

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
    """One Markdown file."""

    path: Path
    fences: tuple[Fence, ...]

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel of its ``sass`` fence."""
        (fence,) = (one for one in self.fences if one.kind == _KERNEL)
        return write_kernel(expand_repeats(fence.text), **dict(_read_options(fence.words)))

    def check(self, fence: Fence) -> None:
        """Compare what one of its fences expects with what is found."""
        find_checks()[fence.kind](self.kernel, blame_kernel(self.kernel), fence.text)


@cache
def find_checks() -> dict[str, Check]:
    """Kind of fence → its check, for the modules of this folder."""
    kinds = sorted(path.stem.removesuffix("_fence") for path in FOLDER.glob("*_fence.py"))
    return {kind: getattr(importlib.import_module(f"tests.cases.{kind}_fence"), f"check_{kind}") for kind in kinds}


def read_case(path: Path) -> Case:
    """Read one file."""
    text = path.read_text(encoding="utf-8")
    fences = (
        Fence(found["kind"], tuple(found["words"].split()), found["text"], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    )
    return Case(path, tuple(fences))


def list_cases() -> list[Case]:
    """All cases of this folder."""
    return [read_case(path) for path in sorted(FOLDER.glob("*.md"))]


def _read_options(words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for word in words:
        name, _, value = word.partition("=")
        if re.fullmatch(r"\d+", value):
            yield name, int(value)
        elif re.fullmatch(r"\d+(?:[.,]\d+)+", value):
            yield name, tuple(int(part) for part in re.split("[.,]", value))
        else:
            yield name, value
