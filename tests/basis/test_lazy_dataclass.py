"""Late dataclasses against the standard library's: the same class, whatever the options, and nothing written before it is needed."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import threading
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpa_lsp
from gpa_lsp.basis import lazy_dataclass
from gpa_lsp.basis.lazy_dataclass import FIRST_INSTANCES, dataclass

Item = TypeVar("Item")
OPTIONS = ("frozen", "kw_only", "eq")
KINDS = ("required", "default", "factory", "field default", "no init", "not compared", "by name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Pickled below, so it needs a name of its module."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point3(Point):
    z: int = 0


def make_namespace(kinds: list[str]) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__annotations__": {f"f{number}": int for number in range(len(kinds))}}
    values = {
        "default": lambda number: number,
        "factory": lambda _: field(default_factory=list),
        "field default": lambda number: field(default=number, repr=False),
        "no init": lambda number: field(init=False, default=number),
        "not compared": lambda number: field(default=number, compare=False),
        "by name": lambda _: field(kw_only=True),
    }
    namespace.update({f"f{number}": values[kind](number) for number, kind in enumerate(kinds) if kind in values})
    return namespace


def build(decorate: Any, kinds: list[str], options: dict[str, bool]) -> Any:
    return decorate(**options, slots=True)(type("Made", (), make_namespace(kinds)))


shapes = st.lists(st.sampled_from(KINDS), max_size=6)
choices = st.dictionaries(st.sampled_from(OPTIONS), st.booleans())


@given(shapes, choices, st.data())
def test_the_class_is_that_of_the_standard_library(
    kinds: list[str], options: dict[str, bool], data: st.DataObject
) -> None:
    if not options.get("kw_only"):
        kinds.sort(key=lambda kind: kind != "required")  # otherwise both refuse
    late, written = build(dataclass, kinds, options), build(dataclasses.dataclass, kinds, options)
    parameters = inspect.signature(written).parameters
    required = {name: 7 for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    extra = data.draw(st.dictionaries(st.sampled_from([*parameters]), st.integers(), max_size=3)) if parameters else {}
    arguments = {**required, **extra}
    several = [
        late(**arguments) for _ in range(FIRST_INSTANCES + 1)
    ]  # the first ones are made without a compiled method
    one, other = several[0], written(**arguments)
    names = [found.name for found in dataclasses.fields(other)]
    for made in several:
        assert [getattr(made, name) for name in names] == [getattr(other, name) for name in names]
    assert repr(one) == repr(other)
    assert (one == late(**arguments)) == (other == written(**arguments))
    assert (late.__hash__ is None) == (written.__hash__ is None)
    for name in names:
        assert change(one, name) == change(other, name)
    assert [found.name for found in dataclasses.fields(one)] == names
    assert late.__match_args__ == written.__match_args__
    assert late.__slots__ == written.__slots__
    assert [*inspect.signature(late).parameters] == [*parameters]


def change(instance: Any, name: str) -> type[BaseException] | None:
    try:
        setattr(instance, name, 99)
        delattr(instance, name)
    except BaseException as error:
        return type(error)
    return None


def test_nothing_is_written_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def write_now(**options: bool) -> Any:
        def decorate(cls: type) -> type:
            written.append(cls.__name__)
            return dataclasses.dataclass(**options)(cls)

        return decorate

    monkeypatch.setattr(lazy_dataclass, "_WRITE_NOW", write_now)

    @dataclass(frozen=True, slots=True)
    class Base:
        a: int

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        b: int = 2

    made = Derived(1)
    assert (made.a, made.b) == (1, 2)
    assert pickle.loads(pickle.dumps(Point3(x=1))).z == 0
    assert written == []
    assert dataclasses.replace(made, b=3).b == 3
    assert [found.name for found in dataclasses.fields(Derived)] == ["a", "b"]
    assert written == ["Model"], "what describes the fields compiles nothing"
    written.clear()
    assert made == Derived(1)
    assert {"Base", "Derived"} <= set(written)


def test_instances_travel_without_their_methods_being_written() -> None:
    point = Point3(x=1, y=2, tags=["a"], z=3)
    assert pickle.loads(pickle.dumps(point)) == point
    assert dataclasses.replace(point, y=5) == Point3(x=1, y=5, tags=["a"], z=3)
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "tags": ["a"], "z": 3}


def test_what_the_class_defines_itself_stays() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:  # noqa: PLW1641 - the decorator adds __hash__
        a: int
        seen: ClassVar[list[int]] = []

        def __post_init__(self) -> None:
            self.seen.append(self.a)

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    assert (repr(Own(1)), Own(1) == Own(2), Own.seen) == ("own", True, [1, 1, 2])
    assert hash(Own(1)) == hash(Own(1))


def test_a_generic_class() -> None:
    @dataclass(frozen=True, slots=True)
    class Box(Generic[Item]):
        item: Item

    assert Box[int](3) == Box(3)
    assert dataclasses.fields(Box)[0].name == "item"


def test_wrong_arguments_are_refused_as_always() -> None:
    with pytest.raises(TypeError, match="y0"):
        Point(x=1, y0=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="x"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(x=1).x = 2  # type: ignore[misc]


def test_two_threads_may_be_the_first_together() -> None:
    for _ in range(50):

        @dataclass(frozen=True, slots=True, kw_only=True)
        class Shared:
            a: int

        barrier = threading.Barrier(4)
        found: list[bool] = []

        def use(cls: Any = Shared, meet: threading.Barrier = barrier, out: list[bool] = found) -> None:
            meet.wait()
            out.append(cls(a=1) == cls(a=1) and hash(cls(a=1)) == hash(cls(a=1)) and repr(cls(a=2)).endswith("(a=2)"))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 4


def test_every_type_of_the_package_can_be_written() -> None:
    """What the standard library would refuse at import (a default that can be changed, a field without one behind one that has) is refused here."""
    count = 0
    for info in pkgutil.walk_packages(gpa_lsp.__path__, "gpa_lsp."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for found in list(vars(module).values()):
            if isinstance(found, type) and found.__module__ == info.name and dataclasses.is_dataclass(found):
                for base in found.__mro__:
                    if "__late_class__" in vars(base):
                        vars(base)["__late_class__"].write_init()
                late = inspect.signature(found.__init__)
                assert [*late.parameters][1:] == [
                    *(one.name for one in dataclasses.fields(found) if one.init and not one.kw_only),
                    *(one.name for one in dataclasses.fields(found) if one.init and one.kw_only),
                ]
                count += 1
    assert count > 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    values: Any
    others: Any = ()
    cache: Any = field(default=None, compare=False)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (np.array([1, 2]), np.array([1, 2, 3]), False),
        (np.array([1]), np.array([1, 1]), False),
        (np.array([1, 2]), None, False),
        ((np.array([1, 2]), "a"), (np.array([1, 2]), "a"), True),
        ([np.array([1, 2])], (np.array([1, 2]),), False),
        ({"a": np.array([1, 2])}, {"a": np.array([1, 2])}, True),
        ({"a": np.array([1, 2])}, {"b": np.array([1, 2])}, False),
        ((np.array([1, 2]),), (np.array([1, 2]), 3), False),
    ],
)
def test_fields_that_hold_arrays_are_compared_by_what_they_hold(one: Any, other: Any, is_same: bool) -> None:
    cached = Rows(values=one, cache=np.array([7, 8]))
    assert (cached == Rows(values=other, cache=np.array([9]))) is is_same
    assert (Rows(values=0, others=(cached,)) == Rows(values=0, others=(Rows(values=other),))) is is_same
    assert (Rows(values=one) in [Rows(values=other)]) is is_same
