"""Tables of rewrites: the Markdown files of this folder.

A section is a heading, a line with the advice, the kind and other facts of a rewrite's context (``fast_math fast_functions kernel=k``), the text
with marks behind the lines the advice is about (:mod:`tests.rewrites.notation`), indented, in which ``□`` stands for what the rows put there, and the
rows (``⏎`` is a line end)::

    - `a = sinf(b);` → `a = __sinf(b);`      the only rewrite that is offered leaves this; several, in their order, leave several
    - `n` for `b` gives `1.0f / n` `i * x`   with `b` replaced, wherever it stands, the only one leaves a text with these words
    - nothing: `x` `y` for `z`               none is offered with x, nor with y, in place of `z` (of □ where no `for` is)
    - one: `x` `y`                           one is offered

Files about Python are named python_*.md; what they leave must parse.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from gpa_lsp.diagnosis.rewrites.model import apply_edits
from tests.rewrites.notation import offer, read_marked

_SECTION = re.compile(
    r"^## (?P<title>[^\n]+)\n+(?P<context>\S[^\n]*)\n+(?P<text>(?:(?:    [^\n]*)?\n)+)"
    r"(?P<rows>(?:- [^\n]+\n(?:  [^\n]+\n)*|[A-Z][^\n]*\n|\n)+)",
    re.MULTILINE,
)
_ROW = re.compile(r"- (?:(?P<count>nothing|one): )?(?P<left>.*?)(?: (?P<how>→|gives) (?P<right>.*))?", re.DOTALL)
_CODE = re.compile(r"`([^`]*)`")


def list_sections() -> Iterator[Any]:
    for path in sorted(Path(__file__).parent.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        found = list(_SECTION.finditer(text + "\n"))
        assert len(found) == text.count("\n## "), f"{path.name}: a section is not understood"
        assert sum(one["rows"].count("- ") for one in found) >= text.count("\n- "), f"{path.name}: a row is not read"
        for one in found:
            yield pytest.param(path.name, one["context"], one["text"], one["rows"], id=f"{path.stem}: {one['title']}")


def read_codes(text: str) -> list[str]:
    return [code.replace("⏎", "\n").replace("\\t", "\t") for code in _CODE.findall(text)]


@pytest.mark.parametrize(("name", "context", "text", "rows"), [*list_sections()])
def test_what_the_rows_say(name: str, context: str, text: str, rows: str) -> None:
    is_python = name.startswith("python_")
    words = context.split()
    facts: dict[str, Any] = {word.partition("=")[0]: word.partition("=")[2] for word in words if "=" in word}
    facts = {key: int(value) if value.isdigit() else value for key, value in facts.items()}
    optimizer, *kinds = [word for word in words if "=" not in word]
    template = dedent(text).strip("\n") + "\n"

    def find(old: str, new: str) -> list[str]:
        marked = template.replace(old, new)
        assert marked != template or old == new, f"{old!r} is not in the text"
        found = offer(optimizer, marked, file="k.py" if is_python else "k.cu", kind=kinds[0] if kinds else "", **facts)
        after = [apply_edits(read_marked(marked)[0], one.edits) for one in found]
        for one in after if is_python else ():
            ast.parse(one)
        return after

    for row in re.findall(r"^- .+\n(?:  .+\n)*", rows + "\n", re.MULTILINE):
        found = _ROW.fullmatch(row.strip())
        assert found is not None and (found["count"] or found["right"]), row
        left, _, replaced = re.sub(r"(?<=`)\s+for\s+(?=`)", "\0", found["left"]).partition("\0")
        (old,) = read_codes(replaced) or ["□"]
        for code in read_codes(left):
            after, right = find(old, code), read_codes(found["right"] or "")
            if found["count"]:
                assert len(after) == (found["count"] == "one"), (code, after)
            elif found["how"] == "→":
                assert after == [read_marked(template.replace(old, one))[0] for one in right], code
            else:
                assert len(after) == 1, (code, after)
                assert [one for one in right if one not in after[0]] == [], (code, after[0])
