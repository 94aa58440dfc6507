"""What rewriting takes and gives: :class:`RewriteContext` and :class:`Rewrite`, edits of one text that a person can take or leave."""

from collections.abc import Callable, Iterator

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import Sentence
from gpa_lsp.sources.trees import SourceTree


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TextPlace:
    """A place between two characters.

    Attributes:
        line: 1-based.
        column: characters (not bytes, not UTF-16 units) before it on its line.
    """

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TextEdit:
    """One piece of text in place of another.

    Attributes:
        start: of what is replaced.
        end: of what is replaced; ``start`` where something is only put in.
        text: what stands there afterwards; its lines end as the document's do.
    """

    start: TextPlace
    end: TextPlace
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteContext:
    """What is known of the code that is to be rewritten, besides its text. ``None`` is unknown.

    Attributes:
        optimizer: whose advice it is; name in the catalogue of optimizers.
        kernel: the kernel's own name, without namespaces, template arguments and parameters; empty when unknown.
        unroll_copies: the unroll factor that the loop should have.
        threads_per_block: the most that any launch has.
        min_blocks: blocks that an SM should hold at once.
        max_registers: per thread, with which it can.
    """

    optimizer: str
    kernel: str = ""
    unroll_copies: int | None = None
    threads_per_block: int | None = None
    min_blocks: int | None = None
    max_registers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A change of the source that the text proves applicable; whether it pays, and whether what it promises holds, its author decides.

    Attributes:
        name: of its kind in the catalogue, e.g. ``unroll_loop``.
        title: what it does, in the imperative, without a full stop.
        explanation: what it gains and what it costs or promises, plain sentences.
        optimizers: names of those whose advice it answers.
        edits: in the order of the text, not overlapping.
        changes_results: numbers may come out differently.
        is_preferred: nothing speaks against taking it: no result changes, no promise is made.
    """

    name: str
    title: Sentence
    explanation: Sentence
    optimizers: tuple[str, ...]
    edits: tuple[TextEdit, ...]
    changes_results: bool
    is_preferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a rewrite is looked for.

    Attributes:
        tree: the text.
        lines: the lines the advice is about, 1-based.
        context: what else is known.
    """

    tree: SourceTree
    lines: frozenset[int]
    context: RewriteContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a kind of rewrite found; :class:`Rewrite` without what every one of its kind has.

    Attributes:
        title: see :class:`Rewrite`.
        explanation: see :class:`Rewrite`.
        edits: in any order.
        is_preferred: see :class:`Rewrite`.
        changes_results: see :class:`Rewrite`.
    """

    title: Sentence
    explanation: Sentence
    edits: tuple[TextEdit, ...]
    changes_results: bool = False
    is_preferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteKind:
    """One kind of rewrite, a member of the catalogue :mod:`gpa_lsp.rewrites.kinds`.

    Attributes:
        language: of the texts it can change, as in ``languages.toml``.
        optimizers: whose advice it answers.
        propose: finds what can be changed at a site.
    """

    language: str
    optimizers: tuple[str, ...]
    propose: Callable[[Site], Iterator[Proposal]]
