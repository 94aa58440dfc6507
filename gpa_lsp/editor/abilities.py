"""Abilities that a client names in its initialization options, beyond the protocol's capabilities; see ``editors/PROTOCOL.md``."""

from collections.abc import Mapping

from msgspec import Struct, field


class Abilities(Struct, frozen=True, kw_only=True, rename="camel"):
    """Messages and views of our own that the client can show."""

    heat: bool = False  # ``gpaLsp/heat``
    status: bool = False  # ``gpaLsp/status``
    output: bool = False  # ``gpaLsp/output``
    links: bool = False  # hovers may end in links that run commands of ours
    # it shows def-use chains of sources itself, so their call hierarchy stays with the language's own server
    call_hierarchy_tree: bool = False
    pages: bool = False  # it shows pages of HTML itself
    typing: bool = False  # ``gpaLsp/askForText``
    questions: bool = False  # it shows a question beside the work, and not in its way
    previews: bool = False  # it shows what is said of an edit before it applies it
    line_end_lenses: bool = False  # it draws lenses at the ends of lines, where hints stand
    is_trusted: bool = field(default=True, name="trusted")  # the user trusts the workspace


def read_abilities(initialization_options: object) -> Abilities:
    """The abilities among a client's initialization options; what makes no sense counts as absent.

    A client that says something senseless about trust is not trusted.

    >>> found = read_abilities({"client": {"heat": True, "links": "yes"}})
    >>> found.heat, found.links, found.is_trusted
    (True, False, True)
    """
    said = initialization_options.get("client") if isinstance(initialization_options, Mapping) else None
    if not isinstance(said, Mapping):
        return Abilities()
    names = zip(Abilities.__struct_encode_fields__, Abilities.__struct_fields__, strict=True)
    return Abilities(**{own: said[name] is True for name, own in names if name in said})
