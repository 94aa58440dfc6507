"""Dataclasses whose methods are written when they are first called.

The standard library writes and compiles six methods for each dataclass at import, 0.6 to 0.7 ms in all; with 300 types that is a third of the
start of a command, most of it for methods that nobody calls. :func:`dataclass` takes the same arguments and gives the same class, but
``__init__`` is compiled (0.1 ms) after the first few instances, and the standard library writes the rest when an instance is first compared, hashed
or printed.

Only plain slotted dataclasses are written late. The other options (``order``, ``weakref_slot``, ``ClassVar``, ``InitVar``, ``KW_ONLY``, no slots) go
to the standard library at once. Fields that are or hold numpy arrays are compared by what the arrays hold, where the standard library raises.
"""

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """``dataclasses.dataclass`` for classes that many programs import and few use."""
        if cls is None:
            return lambda decorated: _decorate(decorated, options)
        return _decorate(cls, options)


__all__ = ["FIRST_INSTANCES", "dataclass", "fill_fields", "read_fields"]

_LATE_OPTIONS = frozenset({"frozen", "slots", "kw_only", "eq"})
_ATTRIBUTES = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_LATE = "__late_class__"
FIRST_INSTANCES = 8
"""Of a type, made without compiling its ``__init__``, which takes as long as fifty of them: half of the types that a command needs have no more."""

_SPECIAL = ("ClassVar", "InitVar", "KW_ONLY")
_LOCK = threading.RLock()
_WRITE_NOW = dataclasses.dataclass
_getters: dict[type, Callable[[object], tuple[Any, ...]]] = {}
_field_names: dict[type, tuple[str, ...]] = {}
_setters: dict[type, tuple[Callable[[object, Any], None], ...]] = {}


def _decorate(cls: type, options: dict[str, bool]) -> Any:
    can_wait = (
        options.get("slots", False)
        and options.keys() <= _LATE_OPTIONS
        and "__slots__" not in cls.__dict__
        and all(_LATE in base.__dict__ for base in cls.__mro__[1:] if "__dataclass_fields__" in base.__dict__)
        and not any(_is_special(annotation) for annotation in cls.__annotations__.values())
    )
    return _LateClass(cls, options).slotted if can_wait else _WRITE_NOW(**options)(cls)


def _is_special(annotation: object) -> bool:
    """Whether it makes no ordinary field."""
    return (
        annotation is ClassVar
        or annotation is dataclasses.KW_ONLY
        or annotation is dataclasses.InitVar
        or isinstance(annotation, dataclasses.InitVar)
        or (isinstance(annotation, str) and any(name in annotation for name in _SPECIAL))
        or getattr(annotation, "__origin__", None) is ClassVar
    )


class _LateClass:
    """A slotted class with stubs in place of its methods, and what it takes to write them."""

    def __init__(self, cls: type, options: dict[str, bool]) -> None:
        self._options = {name: value for name, value in options.items() if name != "slots"}
        self._annotations = cls.__annotations__
        own = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
        if "__eq__" in own and own.get("__hash__") is None:
            own.pop("__hash__", None)  # Python put it there, not the class
        self._defaults = {name: own.pop(name) for name in self._annotations if name in own}
        self._namespace = {name: value for name, value in own.items() if name.startswith("__")}
        self._bases = cls.__bases__
        inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
        own["__slots__"] = tuple(name for name in self._annotations if name not in inherited)
        self._methods = self._list_methods(own)
        own.update({name: self._make_stub(name) for name in self._methods})
        own.update({name: _LateAttribute(self, name) for name in _ATTRIBUTES if name not in own})
        own[_LATE] = self
        if options.get("frozen"):
            own.update(__setattr__=_refuse_to_set, __delattr__=_refuse_to_delete)
            if not hasattr(cls, "__setstate__"):
                own.update(__getstate__=read_fields, __setstate__=fill_fields)
        self.slotted: Any = type(cls)(cls.__name__, cls.__bases__, own)
        self._is_written = False

    def _list_methods(self, own: dict[str, Any]) -> tuple[str, ...]:
        """The methods that the standard library would write: not those that the class has of its own."""
        names = ["__init__", "__repr__"]
        if self._options.get("eq", True):
            names.extend(("__eq__", "__hash__") if self._options.get("frozen") else ("__eq__",))
        return tuple(name for name in names if name not in own)

    def _make_stub(self, name: str) -> Callable[..., Any]:
        if name == "__init__":
            return self._make_first_init()

        def stub(instance: object, *arguments: Any, **named: Any) -> Any:
            self.write()
            return getattr(self.slotted, name)(instance, *arguments, **named)

        return stub

    def _make_first_init(self) -> Callable[..., Any]:
        left = FIRST_INSTANCES
        fields: dict[str, tuple[Any, bool]] = {}

        def stub(instance: object, *arguments: Any, **named: Any) -> None:
            nonlocal left, fields
            left -= 1
            fields = fields or self._list_fields()
            if left < 0 or arguments or not self._fill(instance, fields, named):
                self.write_init()
                self.slotted.__init__(instance, *arguments, **named)

        return stub

    def _fill(self, instance: object, fields: dict[str, tuple[Any, bool]], named: dict[str, Any]) -> bool:
        """Set the fields of an instance; False where the arguments may not be right, which is for the compiled method to say."""
        put = object.__setattr__ if self._options.get("frozen") else setattr
        used = 0
        for name, (given, _) in fields.items():
            default: Any = given
            factory: Any = dataclasses.MISSING
            if isinstance(given, dataclasses.Field):
                default, factory = given.default, given.default_factory
                if not given.init:
                    return False
            if name in named:
                put(instance, name, named[name])
                used += 1
            elif factory is not dataclasses.MISSING:
                put(instance, name, factory())
            elif default is not dataclasses.MISSING:
                put(instance, name, default)
            else:
                return False
        if used < len(named):
            return False
        if hasattr(self.slotted, "__post_init__"):
            instance.__post_init__()  # type: ignore[attr-defined]
        return True

    def write_init(self) -> None:
        """Compile ``__init__`` by itself: it is the one method that most types need."""
        positional: list[str] = []
        named: list[str] = []
        body: list[str] = []
        known: dict[str, Any] = {"_MISSING": dataclasses.MISSING}
        is_frozen = self._options.get("frozen")
        for name, (given, is_named_by_class) in self._list_fields().items():
            spec = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
            is_named = is_named_by_class if spec.kw_only is dataclasses.MISSING else spec.kw_only
            value, parameter = name, name
            if spec.default_factory is not dataclasses.MISSING:
                known[f"_make_{name}"] = spec.default_factory
                value, parameter = f"_make_{name}() if {name} is _MISSING else {name}", f"{name}=_MISSING"
            elif spec.default is not dataclasses.MISSING:
                known[f"_default_{name}"] = spec.default
                parameter = f"{name}=_default_{name}"
            if spec.init:
                (named if is_named else positional).append(parameter)
            elif parameter == name:
                continue  # set by whoever makes the instance
            else:
                value = f"_make_{name}()" if parameter.endswith("_MISSING") else f"_default_{name}"
            if is_frozen:  # the slot itself is set faster than it is found by its name
                known[f"_set_{name}"] = getattr(self.slotted, name).__set__
            body.append(f"_set_{name}(self, {value})" if is_frozen else f"self.{name} = {value}")
        if hasattr(self.slotted, "__post_init__"):
            body.append("self.__post_init__()")
        parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
        exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), known)
        known["__init__"].__qualname__ = f"{self.slotted.__qualname__}.__init__"
        known["__init__"].__module__ = self.slotted.__module__
        self.slotted.__init__ = known["__init__"]

    def _list_fields(self) -> dict[str, tuple[Any, bool]]:
        """Each field's default (or ``field(...)``, or ``MISSING``) and whether it is given by name, in the order of ``dataclasses.fields``."""
        fields: dict[str, tuple[Any, bool]] = {}
        for base in reversed(self.slotted.__mro__):
            late = base.__dict__.get(_LATE)
            if late is not None:
                is_named = late._options.get("kw_only", False)
                fields.update(
                    {name: (late._defaults.get(name, dataclasses.MISSING), is_named) for name in late._annotations}
                )
        return fields

    def write_fields(self) -> bool:
        """Have the standard library describe the fields, which takes no compiling; False where only :meth:`write` can."""
        fields = self._list_fields()
        if len({is_named for _, is_named in fields.values()}) != 1:
            return False
        namespace: dict[str, Any] = {
            name: given for name, (given, _) in fields.items() if given is not dataclasses.MISSING
        }
        namespace["__doc__"] = "Else the standard library writes one, from a signature."
        namespace["__annotations__"] = {
            name: annotation
            for base in reversed(self.slotted.__mro__)
            if _LATE in base.__dict__
            for name, annotation in base.__dict__[_LATE]._annotations.items()
        }
        is_named = next(iter(fields.values()))[1]
        model: Any = _WRITE_NOW(init=False, repr=False, eq=False, kw_only=is_named)(type("Model", (), namespace))
        self.slotted.__dataclass_fields__ = model.__dict__["__dataclass_fields__"]
        return True

    def write(self) -> None:
        """Have the standard library write the methods on a class with the same fields and bases, and take them from there."""
        with _LOCK:
            if self._is_written:
                return
            namespace = {**self._namespace, **self._defaults}
            namespace["__doc__"] = namespace.get("__doc__") or "Else the standard library writes one, from a signature."
            model = _WRITE_NOW(**self._options)(type(self.slotted)(self.slotted.__name__, self._bases, namespace))
            for name in (*self._methods, *_ATTRIBUTES, "__replace__"):
                if name != "__init__" and name in model.__dict__:  # that one knows nothing of slots
                    written = model.__dict__[name]
                    setattr(self.slotted, name, _compare_arrays_too(written) if name == "__eq__" else written)
            self._is_written = True


def _compare_arrays_too(written: Callable[[object, object], bool]) -> Callable[[object, object], bool]:
    """``__eq__`` for fields that are, or hold, numpy arrays as well, which have no truth of their own."""

    def compare(self: Any, other: Any) -> bool:
        try:
            return written(self, other)
        except ValueError:
            fields = [field.name for field in dataclasses.fields(self) if field.compare]
            return all(_is_same(getattr(self, name), getattr(other, name)) for name in fields)

    return compare


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if hasattr(one, "shape") or hasattr(other, "shape"):
        is_alike = getattr(one, "shape", None) == getattr(other, "shape", None)
        return is_alike and bool((one == other).all())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)


class _LateAttribute:
    """What ``dataclasses.fields`` and its kin look for."""

    def __init__(self, late: _LateClass, name: str) -> None:
        self._late = late
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if self._name == "__dataclass_fields__" and self._late.write_fields():
            return self._late.slotted.__dataclass_fields__
        self._late.write()
        return self._late.slotted.__dict__[self._name]


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def read_fields(self: object) -> tuple[Any, ...]:
    """The values of all fields of an instance, in their order."""
    cls = type(self)
    return (_getters.get(cls) or _make_getter(cls))(self)


def _make_getter(cls: type) -> Callable[[object], tuple[Any, ...]]:
    """What gets the values of all fields of a dataclass at once."""
    names = _list_fields(cls)
    get: Any = (
        attrgetter(*names) if len(names) > 1 else lambda instance: tuple(getattr(instance, name) for name in names)
    )
    _getters[cls] = get
    return cast("Callable[[object], tuple[Any, ...]]", get)


def fill_fields(self: object, state: Sequence[Any]) -> None:
    """Give an instance the values of all its fields: one that has none yet, though it be frozen."""
    for put, value in zip(_list_setters(type(self)), state, strict=True):
        put(self, value)


def _list_setters(cls: type) -> tuple[Callable[[object, Any], None], ...]:
    """What sets the slots of a dataclass, frozen or not, in the order of its fields."""
    known = _setters.get(cls)
    if known is None:
        known = _setters[cls] = tuple(getattr(cls, name).__set__ for name in _list_fields(cls))
    return known


def _list_fields(cls: type) -> tuple[str, ...]:
    """The names of a dataclass' fields in the order of ``dataclasses.fields``, without having its methods written: what is unpickled needs none."""
    known = _field_names.get(cls)
    if known is None:
        names = {
            name: None
            for base in reversed(cls.__mro__)
            if "__dataclass_fields__" in base.__dict__
            for name in getattr(base, "__annotations__", ())
        }
        known = _field_names[cls] = tuple(names)
    return known
