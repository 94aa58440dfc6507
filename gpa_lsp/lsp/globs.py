"""Patterns for files, as the settings have them: ``**/*.ncu-rep``.

They become regular expressions that never try the same thing twice: a pattern can come with a repository, and one like ``*a*a*a*a*b`` must not stop
the server. Whatever stands between two ``**`` is taken where it fits first, which is never wrong, because the second ``**`` takes what is left; so
is what stands between two ``*`` of a part.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

_WILDCARD = re.compile(r"(\*+|\?|\[!?[^\]/]+\])")


def split_glob(glob: str) -> tuple[str, str]:
    """The folder before the first wildcard, and the rest.

    >>> split_glob("/scratch/run*/**/*.ncu-rep")
    ('/scratch', 'run*/**/*.ncu-rep')
    """
    parts = Path(glob).parts
    plain = 0
    while plain < len(parts) - 1 and not re.search(r"[*?\[]", parts[plain]):
        plain += 1
    return os.fspath(Path(*parts[:plain])), "/".join(parts[plain:])


def compile_globs(globs: Iterable[str]) -> re.Pattern[str]:
    """A pattern for paths relative to a root, with ``/`` between their parts; ``fullmatch`` takes time quadratic in the path at most.

    >>> pattern = compile_globs(["**/*.ncu-rep", "out/*.json"])
    >>> [bool(pattern.fullmatch(path)) for path in ("a.ncu-rep", "x/y/a.ncu-rep", "out/a.json", "out/x/a.json")]
    [True, True, True, False]
    """
    return re.compile("|".join(f"(?:{_translate_glob(glob)})" for glob in globs) or r"(?!)", re.DOTALL)


def _translate_glob(glob: str) -> str:
    """``**`` stands for any folders, and before other characters for any beginning of a path: ``**.ncu-rep`` is ``**/*.ncu-rep``."""
    stretches: list[list[str]] = [[]]
    parts = glob.removeprefix("./").split("/")
    for part in parts:
        if part.startswith("**"):
            stretches.append([])
        if part.strip("*") or not part.startswith("**"):
            stretches[-1].append(_translate_part(part))
    first, *others = ["/".join(stretch) for stretch in stretches]
    if not others:
        return first
    *inner, last = others
    words = [first + "/" if first else ""]
    words.extend(f"(?>(?:.*?/)??{stretch}/)" for stretch in inner if stretch)
    words.append(f"(?:.*/)?{last}" if last else ".*")
    return "".join(words)


def _translate_part(part: str) -> str:
    """A part of a path: between two stars the earliest fit, which leaves most to the later star."""
    pieces = _WILDCARD.split(part)
    words = [re.escape(pieces[0])]
    run: list[str] = []
    is_open = False
    for wildcard, plain in zip(pieces[1::2], pieces[2::2], strict=True):
        if wildcard.startswith("*"):
            words.append(f"(?>[^/]*?{''.join(run)})" if is_open else "".join(run))
            run, is_open = [], True
        else:
            run.append("[^/]" if wildcard == "?" else _translate_set(wildcard))
        run.append(re.escape(plain))
    words.append(f"[^/]*{''.join(run)}" if is_open else "".join(run))
    return "".join(words)


def _translate_set(text: str) -> str:
    """``[ab]``, ``[!a-c]``; what is no set stands for itself."""
    body = re.sub(r"([\\\[&~|])", r"\\\1", text[1:-1])
    pattern = f"[^/{body[1:]}]" if body.startswith("!") else f"(?!/)[{body}]"
    try:
        re.compile(pattern)
    except re.error:
        return re.escape(text)
    return re.escape(text) if body == "!" else pattern
