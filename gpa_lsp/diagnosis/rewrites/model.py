"""What rewriting takes and gives: :class:`RewriteContext` and :class:`Rewrite`, edits of one text that a person can take or leave."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from gpa_lsp.code.sources.trees import SourceTree
from gpa_lsp.foundation.prose import Sentence


class TextPlace(Struct, frozen=True, kw_only=True, order=True):
    """A place between two characters."""

    line: int  # 1-based
    column: int  # characters (not bytes, not UTF-16 units) before it on its line


class TextEdit(Struct, frozen=True, kw_only=True, order=True):
    """One piece of text in place of another."""

    start: TextPlace  # of what is replaced
    end: TextPlace  # of what is replaced; ``start`` where something is only put in
    text: str  # what stands there afterwards; its lines end as the document's do


class RewriteContext(Struct, frozen=True, kw_only=True):
    """What is known of the code that is to be rewritten, besides its text. ``None`` is unknown."""

    optimizer: str  # whose advice it is; name in the catalogue of optimizers
    kernel: str = ""  # the kernel's own name, without namespaces, template arguments and parameters; empty when unknown
    unroll_copies: int | None = None  # the unroll factor that the loop should have
    threads_per_block: int | None = None  # the most that any launch has
    min_blocks: int | None = None  # blocks that an SM should hold at once
    max_registers: int | None = None  # per thread, with which it can


class Rewrite(Struct, frozen=True, kw_only=True):
    """A change of the source that the text proves applicable; whether it pays, and whether what it promises holds, its author decides."""

    name: str  # of its kind in the catalogue, e.g. ``unroll_loop``.
    title: Sentence  # what it does, in the imperative, without a full stop
    explanation: Sentence  # what it gains and what it costs or promises, plain sentences
    optimizers: tuple[str, ...]  # names of those whose advice it answers
    edits: tuple[TextEdit, ...]  # in the order of the text, not overlapping
    changes_results: bool  # numbers may come out differently
    is_preferred: bool = False  # nothing speaks against taking it: no result changes, no promise is made


class Site(Struct, frozen=True, kw_only=True):
    """Where a rewrite is looked for."""

    tree: SourceTree  # the text
    lines: frozenset[int]  # the lines the advice is about, 1-based
    context: RewriteContext  # what else is known


class Proposal(Struct, frozen=True, kw_only=True):
    """What a kind of rewrite found; :class:`Rewrite` without what every one of its kind has."""

    title: Sentence  # see :class:`Rewrite`
    explanation: Sentence  # see :class:`Rewrite`
    edits: tuple[TextEdit, ...]  # in any order
    changes_results: bool = False  # see :class:`Rewrite`
    is_preferred: bool = False  # see :class:`Rewrite`


class RewriteKind(Struct, frozen=True, kw_only=True):
    """One kind of rewrite, a member of the catalogue :mod:`gpa_lsp.diagnosis.rewrites.kinds`."""

    language: str  # of the texts it can change, as in ``languages.toml``
    optimizers: tuple[str, ...]  # whose advice it answers
    propose: Callable[[Site], Iterator[Proposal]]  # finds what can be changed at a site
