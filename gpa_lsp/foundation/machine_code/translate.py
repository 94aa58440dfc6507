"""Typed Python → LLVM: :func:`translate` gives the module of some functions and of all that they call.

A function whose parameters all say their types becomes one of the module. One whose parameters say none is written out where it is called, for the
types that it is called with; types and literals may be among its arguments, and an ``if`` of literals keeps one of its branches.
"""

import ast
import enum
import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from llvmlite import ir
from msgspec import Struct

from gpa_lsp.foundation.machine_code import types
from gpa_lsp.foundation.machine_code.intrinsics import Declarations, Intrinsics
from gpa_lsp.foundation.machine_code.types import BOOL, LANES, Number, PointerType
from gpa_lsp.foundation.machine_code.values import (
    BIT,
    LONG,
    POINTER,
    S64,
    U32,
    WORD,
    Literal,
    Loop,
    Return,
    Value,
    Variable,
    find_ir,
)


class Written(Struct, frozen=True, eq=False):
    """A function as it is written."""

    node: ast.FunctionDef  # it
    names: Mapping[str, Any]  # what stands for the names in it
    place: str  # file that it stands in


def read_functions(text: str, names: dict[str, Any], place: str) -> dict[str, Written]:
    """The functions of a text, which see each other.

    Args:
        text: of a module without imports.
        names: what else they see.
        place: for messages.
    """
    found: dict[str, Any] = {}
    seen = ChainMap(found, names)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = Written(node, seen, place)
    return found


@cache
def _read_module(path: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def find_written(function: FunctionType) -> Written:
    """A function as its module has it."""
    path = inspect.getfile(function)
    return Written(_read_module(path)[function.__name__], function.__globals__, path)


def translate(roots: "Iterable[Callable[..., Any] | Written]", *, name: str) -> ir.Module:
    """The module of some functions, which can be called by their names.

    Args:
        roots: functions whose parameters say their types.
        name: of the module, for messages of LLVM.

    Raises:
        TranslationError: something is written that the translator does not know.
    """
    module = Module(name)
    for root in roots:
        module.find(root if isinstance(root, Written) else find_written(root)).linkage = ""
    while module.waiting:
        written, function = module.waiting.pop()
        Body(module, written).translate(function)
    return module.code


class Module(Declarations):
    """A module of LLVM whose functions are translated when they are first called.

    Args:
        name: of it, for messages of LLVM.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.waiting: list[tuple[Written, ir.Function]] = []
        self._found: dict[ast.FunctionDef, ir.Function] = {}

    def find(self, written: Written) -> ir.Function:
        """A function of the module, to be translated."""
        found = self._found.get(written.node)
        if found is None:
            result, parameters = self.sign(written)
            kind = ir.FunctionType(find_ir(result), [find_ir(one) for one in parameters])
            found = self._found[written.node] = ir.Function(self.code, kind, written.node.name)
            found.linkage = "internal"
            found.attributes.add("nounwind")
            self.waiting.append((written, found))
        return found

    def sign(self, written: Written) -> tuple[Any, list[Any]]:
        """The types of a function: of its result (None for none), and of its parameters."""
        body = Body(self, written)
        parameters = [body.read_type(one.annotation) for one in written.node.args.args]
        return (None if written.node.returns is None else body.read_type(written.node.returns)), parameters


class Body(Intrinsics):
    """Translates one function.

    Args:
        module: it becomes part of.
        written: it.
        outer: who it is written out in.
    """

    def __init__(self, module: Module, written: Written, outer: "Body | None" = None) -> None:
        super().__init__(module, written.place)
        self._module = module
        self._written = written
        self._names: dict[str, Any] = {}
        self._loops: list[Loop | None] = []  # None for one that is written out
        self._result: Any = None
        self._end: Return | None = None
        self._at: ast.AST = written.node
        if outer is not None:
            self._builder, self._entry = outer._builder, outer._entry

    # --- functions ---

    def translate(self, function: ir.Function) -> None:
        """All of it."""
        self._result, kinds = self._module.sign(self._written)
        entry = function.append_basic_block("entry")
        begin = function.append_basic_block("begin")
        self._entry = ir.IRBuilder(entry)
        self._builder = ir.IRBuilder(begin)
        self.bind([Value(argument, kind) for argument, kind in zip(function.args, kinds, strict=True)])
        self._run(self._written.node.body)
        if not self._builder.block.is_terminated:
            if self._result is None:
                self._builder.ret_void()
            else:
                self._builder.unreachable()
        self._entry.branch(begin)

    def bind(self, arguments: list[Any]) -> None:
        """Give the parameters their values; those that are assigned to are variables."""
        assigned = {
            one.id
            for one in ast.walk(self._written.node)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        for parameter, argument in zip(self._written.node.args.args, arguments, strict=True):
            if parameter.arg in assigned and isinstance(argument, (Value, Literal)):
                self._name(parameter.arg, argument)
            else:
                self._names[parameter.arg] = argument

    def _write_out(self, written: Written, arguments: list[Any]) -> Any:
        """Write a function out in place of its call, and find its result."""
        inner = type(self)(self._module, written, self)
        inner.bind(arguments)
        end = inner._end = Return(self._builder.append_basic_block("behind"))
        inner._run(written.node.body)
        if not self._builder.block.is_terminated:
            self._builder.branch(end.behind)
        self._builder.position_at_end(end.behind)
        return self._give(end)

    def _give(self, end: Return) -> Any:
        """The result of a function that was written out."""
        if end.count == 1 and end.known is not None:
            return end.known
        return None if end.place is None else Value(self._load(end.place, end.kind), end.kind)

    def read_type(self, node: "ast.expr | None") -> Any:
        """The type that an expression of names is."""
        found = None if node is None else self._look_up_known(node)
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if found is None:
            raise self._fail("a type is missing")
        return found

    # --- statements ---

    def _run(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self._builder.block.is_terminated:
                return
            self._at = statement
            if getattr(statement, "orelse", None) and not isinstance(statement, ast.If):
                raise self._fail("a loop has no else")
            self._run_one(statement)

    def _run_one(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self._find(value)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._run_assignment(statement)
            case ast.If():
                self._run_if(statement)
            case ast.While(test=test, body=body):
                self._run_while(test, body)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id=kind), args=arguments), body=body):
                self._run_for(name, kind, arguments, body)
            case ast.Return(value=value):
                self._return(None if value is None else self._find(value))
            case ast.Break():
                self._builder.branch(self._find_loop().behind)
            case ast.Continue():
                self._builder.branch(self._find_loop().again)
            case _:
                raise self._fail(f"there is no {type(statement).__name__} in typed Python")

    def _find_loop(self) -> Loop:
        found = self._loops[-1]
        if found is None:
            raise self._fail("a loop that is written out has no break and no continue")
        return found

    def _run_assignment(self, statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                found = [self._find(one) for one in values]
                for target, one in zip(targets, found, strict=True):
                    self._assign(target, one)
            case ast.Assign(targets=targets, value=value):
                one = self._find(value)
                for target in targets:
                    self._assign(target, one)
            case ast.AnnAssign(target=target, annotation=annotation, value=value) if value is not None:
                self._assign(target, self._fit(self._find(value), self.read_type(annotation)))
            case ast.AugAssign(target=target, op=operator, value=value):
                self._assign(target, self._join(operator, self._find(target), self._find(value)))

    def _return(self, found: Any) -> None:
        end = self._end
        if end is None:
            if self._result is None:
                self._builder.ret_void()
            else:
                self._builder.ret(self._fit(found, self._result).code)
            return
        end.count += 1
        if isinstance(found, Literal):
            end.known = found if end.count == 1 else None
            found = self._settle(found) if end.kind is None else self._fit(found, end.kind)
        elif found is not None and not isinstance(found, Value):
            end.known = found
            self._builder.branch(end.behind)
            return
        if found is not None:
            if end.place is None:
                end.place, end.kind = self._reserve(found.kind), found.kind
            self._store(self._fit(found, end.kind).code, end.place)
        self._builder.branch(end.behind)

    def _run_if(self, statement: ast.If) -> None:
        condition = self._find(statement.test)
        if isinstance(condition, Literal):
            self._run(statement.body if condition.value else statement.orelse)
            return
        then, behind = self._builder.append_basic_block("then"), self._builder.append_basic_block("behind")
        other = self._builder.append_basic_block("else") if statement.orelse else behind
        self._builder.cbranch(self._test(condition), then, other)
        for block, body in ((then, statement.body), (other, statement.orelse)):
            if block is behind:
                continue
            self._builder.position_at_end(block)
            self._run(body)
            if not self._builder.block.is_terminated:
                self._builder.branch(behind)
        self._builder.position_at_end(behind)

    def _run_while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        again, inside, behind = (self._builder.append_basic_block(name) for name in ("again", "inside", "behind"))
        self._builder.branch(again)
        self._builder.position_at_end(again)
        condition = self._find(test)
        if isinstance(condition, Literal) and condition.value:
            self._builder.branch(inside)
        else:
            self._builder.cbranch(self._test(condition), inside, behind)
        self._loop(inside, Loop(again, behind), body)
        if not self._builder.block.is_terminated:
            self._builder.branch(again)
        self._builder.position_at_end(behind)

    def _loop(self, inside: ir.Block, loop: Loop, body: list[ast.stmt]) -> None:
        self._builder.position_at_end(inside)
        self._loops.append(loop)
        self._run(body)
        self._loops.pop()

    def _run_for(self, name: str, kind: str, arguments: list[ast.expr], body: list[ast.stmt]) -> None:
        found = [self._find(one) for one in arguments]
        if kind == "unrolled":
            self._loops.append(None)
            for number in range(found[0].value):
                self._names[name] = Literal(number)
                self._run(body)
            self._loops.pop()
            return
        again, inside, on, behind = (
            self._builder.append_basic_block(one) for one in ("again", "inside", "on", "behind")
        )
        if kind == "bits_of":
            left = self._reserve(U32)
            self._store(self._fit(found[0], U32).code, left)
        elif kind == "range":
            left = self._reserve(S64)
            first, last = (Literal(0), found[0]) if len(found) == 1 else (found[0], found[1])
            step = found[2].value if len(found) == 3 else 1
            last = self._fit(last, S64)
            self._store(self._fit(first, S64).code, left)
        else:
            raise self._fail(f"a loop over {kind}")
        self._builder.branch(again)
        self._builder.position_at_end(again)
        number = self._load(left, U32 if kind == "bits_of" else S64)
        if kind == "bits_of":
            goes_on = self._builder.icmp_unsigned("!=", number, ir.Constant(WORD, 0))
        else:
            goes_on = self._builder.icmp_signed("<" if step > 0 else ">", number, last.code)
        self._builder.cbranch(goes_on, inside, behind)
        self._builder.position_at_end(inside)
        if kind == "bits_of":
            counter = self._module.declare("llvm.cttz.i32", WORD, [WORD, BIT])
            lowest = self._builder.call(counter, [number, ir.Constant(BIT, 1)])
            self._begin_turn(name, Value(self._builder.zext(lowest, LONG), S64))
        else:
            self._begin_turn(name, Value(number, S64))
        self._loop(inside, Loop(on, behind), body)
        if not self._builder.block.is_terminated:
            self._builder.branch(on)
        self._builder.position_at_end(on)
        if kind == "bits_of":
            following = self._builder.and_(number, self._builder.sub(number, ir.Constant(WORD, 1)))
        else:
            following = self._builder.add(number, ir.Constant(LONG, step))
        self._store(following, left)
        self._builder.branch(again)
        self._builder.position_at_end(behind)

    def _begin_turn(self, name: str, found: Any) -> None:
        """Give the name of a loop its value."""
        if isinstance(found, Value):
            self._name(name, found)
        else:
            self._names[name] = found

    def _assign(self, target: ast.expr, found: Any) -> None:
        match target:
            case ast.Name(id=name):
                self._name(name, found)
            case ast.Attribute(value=value, attr=name):
                place, kind, _ = self._find_field(self._find(value), name)
                self._store(self._fit(found, kind).code, place)
            case ast.Subscript(value=value, slice=index):
                pointer = self._find(value)
                kind = pointer.kind.to
                self._store(self._fit(found, kind).code, self._step(pointer, self._find(index)))
            case _:
                raise self._fail("nothing can be assigned to that")

    def _name(self, name: str, found: Any) -> None:
        before = self._names.get(name)
        if isinstance(before, Variable):
            self._store(self._fit(found, before.kind).code, before.place)
            return
        if isinstance(found, Literal):
            found = self._settle(found)
        if not isinstance(found, Value):
            self._names[name] = found  # a type, or a function
            return
        variable = self._names[name] = Variable(self._reserve(found.kind), found.kind)
        self._store(found.code, variable.place)

    # --- expressions ---

    def _look_up_known(self, node: ast.expr) -> Any:
        """The object that a name or attribute of the module stands for; None where it is not the module's."""
        match node:
            case ast.Name(id=name):
                return self._written.names.get(name)
            case ast.Attribute(value=value, attr=name):
                return getattr(self._look_up_known(value), name, None)
            case ast.Subscript(value=value, slice=index):
                return self._look_up_known(value)[self.read_type(index)]
            case ast.Constant(value=str() as text):
                return self._look_up_known(ast.parse(text, mode="eval").body)
        return None

    def _find(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=None):
                return Value(ir.Constant(POINTER, None), None)
            case ast.Constant(value=int() | float() as value):
                return Literal(value)
            case ast.Name(id=name) if name in self._names:
                found = self._names[name]
                return Value(self._load(found.place, found.kind), found.kind) if isinstance(found, Variable) else found
            case ast.Name():
                return self._take_known(node)
            case ast.Attribute(value=value, attr=name):
                return self._find_attribute(node, value, name)
            case ast.Subscript(value=value, slice=index):
                return self._find_element(self._find(value), self._find(index))
            case ast.Call(func=function, args=arguments):
                return self._call(self._find(function), arguments)
        return self._find_joined(node)

    def _find_joined(self, node: ast.expr) -> Any:
        match node:
            case ast.BinOp(left=left, op=operator, right=right):
                return self._join(operator, self._find(left), self._find(right))
            case ast.UnaryOp(op=operator, operand=operand):
                return self._turn(operator, self._find(operand))
            case ast.BoolOp(op=operator, values=values):
                return self._join_tests(operator, values)
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self._compare_all(left, operators, others)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._choose(self._find(test), body, other)
        raise self._fail(f"there is no {type(node).__name__} in typed Python")

    def _take_known(self, node: ast.expr) -> Any:
        found = self._look_up_known(node)
        if found is None:
            raise self._fail(f"{ast.unparse(node)} is unknown")
        return self._as_known(found)

    def _as_known(self, found: Any) -> Any:
        """An object known at translation; a number becomes a literal."""
        if isinstance(found, (int, float, enum.IntEnum)):
            return Literal(found if isinstance(found, float) else int(found))
        return found

    def _find_attribute(self, node: ast.expr, value: ast.expr, name: str) -> Any:
        root = value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self._names:
            return self._take_known(node)
        found = self._find(value)
        if not isinstance(found, Value):
            return self._as_known(getattr(found, name))
        place, kind, count = self._find_field(found, name)
        if count:
            return Value(place, PointerType(kind))
        if isinstance(kind, type):
            return Value(place, kind)
        return Value(self._load(place, kind), kind)

    def _find_element(self, found: Any, index: Any) -> Any:
        if not isinstance(found, Value):
            return found[index]  # a type
        kind = found.kind
        if isinstance(kind, Number):
            lane = ir.Constant(WORD, index.value) if isinstance(index, Literal) else index.code
            return Value(self._builder.extract_element(found.code, lane), kind.spread(1))
        place = self._step(found, index)
        to = kind.to
        return Value(place, to) if isinstance(to, type) else Value(self._load(place, to), to)

    def _compare_all(self, left: ast.expr, operators: list[ast.cmpop], others: list[ast.expr]) -> Any:
        if isinstance(operators[0], (ast.In, ast.NotIn)) and isinstance(others[0], ast.Tuple):
            found = self._compare_any(self._find(left), [self._find(one) for one in others[0].elts])
            return found if isinstance(operators[0], ast.In) else self._turn(ast.Not(), found)
        values = [self._find(one) for one in (left, *others)]
        found = [self._compare(one, *values[place : place + 2]) for place, one in enumerate(operators)]
        result = found[0]
        for one in found[1:]:
            result = self._join(ast.BitAnd(), result, one)
        return result

    def _join_tests(self, operator: ast.boolop, nodes: list[ast.expr]) -> Any:
        """Translate ``and`` and ``or``: an operand is evaluated only where those before it leave the result open."""
        ends = isinstance(operator, ast.Or)
        first = self._find(nodes[0])
        if isinstance(first, Literal):
            if bool(first.value) == ends or len(nodes) == 1:
                return Literal(bool(first.value))
            return self._join_tests(operator, nodes[1:])
        if len(nodes) == 1:
            return Value(self._test(first), BOOL.spread(self._count_lanes(first)))
        if self._count_lanes(first) > 1:
            rest = self._join_tests(operator, nodes[1:])
            one = Value(self._test(first), BOOL.spread(LANES))
            return self._join(ast.BitOr() if ends else ast.BitAnd(), one, rest)
        test, before = self._test(first), self._builder.block
        more, behind = self._builder.append_basic_block("more"), self._builder.append_basic_block("behind")
        self._builder.cbranch(test, behind if ends else more, more if ends else behind)
        self._builder.position_at_end(more)
        rest = self._fit(self._join_tests(operator, nodes[1:]), BOOL)
        last = self._builder.block
        self._builder.branch(behind)
        self._builder.position_at_end(behind)
        found = self._builder.phi(BIT)
        found.add_incoming(ir.Constant(BIT, int(ends)), before)
        found.add_incoming(rest.code, last)
        return Value(found, BOOL)

    def _choose(self, condition: Any, body: ast.expr, other: ast.expr) -> Any:
        if isinstance(condition, Literal):
            return self._find(body if condition.value else other)
        if self._count_lanes(condition) > 1 or (_is_plain(body) and _is_plain(other)):
            one, two = self._find(body), self._find(other)
            if isinstance(one, Literal) and isinstance(two, Literal):
                one = self._settle(one)
            one, two = self._meet(one, two)
            lanes = self._count_lanes(condition)
            if lanes > 1 and isinstance(one.kind, Number):
                one, two = self._fit(one, one.kind.spread(lanes)), self._fit(two, two.kind.spread(lanes))
            return Value(self._builder.select(self._test(condition), one.code, two.code), one.kind)
        then, els, behind = (self._builder.append_basic_block(name) for name in ("then", "else", "behind"))
        self._builder.cbranch(self._test(condition), then, els)
        self._builder.position_at_end(then)
        one = self._find(body)
        then = self._builder.block
        self._builder.position_at_end(els)
        two = self._find(other)
        els = self._builder.block
        if isinstance(one, Literal) and isinstance(two, Literal):
            one = self._settle(one)
        # what each becomes is written at its own end
        if isinstance(one, Literal):
            self._builder.position_at_end(then)
            one = self._fit(one, two.kind)
        else:
            self._builder.position_at_end(els)
            two = self._fit(two, one.kind)
        for block in (then, els):
            self._builder.position_at_end(block)
            self._builder.branch(behind)
        self._builder.position_at_end(behind)
        found = self._builder.phi(find_ir(one.kind))
        found.add_incoming(one.code, then)
        found.add_incoming(two.code, els)
        return Value(found, one.kind)

    # --- calls ---

    def _call(self, function: Any, nodes: list[ast.expr]) -> Any:
        arguments = [self._find(one) for one in nodes]
        if isinstance(function, Number):
            return self._cast(arguments[0], function)
        if isinstance(function, Value):  # an operand, as lanes of a type
            return self._read_operand(function, arguments[0])
        if isinstance(function, types.Intrinsic):
            intrinsic: Callable[..., Any] | None = getattr(self, f"_call_{function.name}", None)
            return self._call_math(function.name, arguments) if intrinsic is None else intrinsic(*arguments)
        if isinstance(function, FunctionType):
            function = find_written(function)
        if not isinstance(function, Written):
            raise self._fail(f"{function} is no function")
        if any(one.annotation is None for one in function.node.args.args):
            return self._write_out(function, arguments)
        callee = self._module.find(function)
        result, kinds = self._module.sign(function)
        fitted = [self._fit(one, kind).code for one, kind in zip(arguments, kinds, strict=True)]
        found = self._builder.call(callee, fitted)
        return None if result is None else Value(found, result)


def _is_plain(node: ast.expr) -> bool:
    """Whether it costs nothing and can do no harm to compute it where it is not asked for."""
    harmful = (ast.Call, ast.Subscript, ast.Attribute, ast.BoolOp, ast.FloorDiv, ast.Mod)
    return not any(isinstance(one, harmful) for one in ast.walk(node))
