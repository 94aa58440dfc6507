"""Facts are found once, when they are first asked for."""

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.records import SharedFacts


class Thing(Struct, SharedFacts, frozen=True, kw_only=True, dict=True):
    """A thing with a name."""

    name: str


def shout(thing: Thing) -> list[str]:
    return [thing.name.upper()]


def test_a_function_is_asked_once_even_where_it_finds_nothing() -> None:
    thing, asked = Thing(name="a"), []
    assert thing.once(asked.append) is thing.once(asked.append) is None
    assert asked == [thing]
    assert thing.once(shout) is thing.once(shout) == ["A"]


def test_what_was_found_makes_no_thing_different_and_goes_with_no_copy() -> None:
    thing, other = Thing(name="a"), Thing(name="a")
    assert thing.once(shout) is not other.once(shout)
    assert thing == other and hash(thing) == hash(other) and repr(thing) == "Thing(name='a')"
    assert replace(thing, name="b").once(shout) == ["B"]


def test_what_was_found_is_found_again_after_it_was_forgotten() -> None:
    thing = Thing(name="a")
    thing.forget()
    found = thing.once(shout)
    thing.forget()
    assert thing.once(shout) == found and thing.once(shout) is not found
