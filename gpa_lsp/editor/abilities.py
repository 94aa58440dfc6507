"""What a client says it can do beyond the protocol, see ``editors/PROTOCOL.md``."""

from collections.abc import Mapping

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What the client wants to be sent.

    Attributes:
        heat: ``gpaLsp/heat``.
        status: ``gpaLsp/status``.
        output: ``gpaLsp/output``.
        images: hovers may contain pictures.
        call_hierarchy_tree: it shows def-use chains of sources itself, so their call hierarchy stays with the language's own server.
        pages: it shows pages of HTML itself.
        questions: it shows a question beside the work, and not in its way.
        previews: it shows what is said of an edit before it applies it.
        line_end_lenses: it draws lenses at the ends of lines, where hints stand.
        is_trusted: the user trusts the workspace.
    """

    heat: bool = False
    status: bool = False
    output: bool = False
    images: bool = False
    call_hierarchy_tree: bool = False
    pages: bool = False
    questions: bool = False
    previews: bool = False
    line_end_lenses: bool = False
    is_trusted: bool = True


_NAMES = {
    "heat": "heat",
    "status": "status",
    "output": "output",
    "images": "images",
    "callHierarchyTree": "call_hierarchy_tree",
    "pages": "pages",
    "questions": "questions",
    "previews": "previews",
    "lineEndLenses": "line_end_lenses",
    "trusted": "is_trusted",
}


def read_abilities(initialization_options: object) -> Abilities:
    """The abilities among a client's initialization options; what makes no sense counts as absent.

    A client that says something senseless about trust is not trusted.

    >>> found = read_abilities({"client": {"heat": True, "images": "yes"}})
    >>> found.heat, found.images, found.is_trusted
    (True, False, True)
    """
    said = initialization_options.get("client") if isinstance(initialization_options, Mapping) else None
    if not isinstance(said, Mapping):
        return Abilities()
    values = {field: said[name] is True for name, field in _NAMES.items() if name in said}
    return Abilities(**values)
