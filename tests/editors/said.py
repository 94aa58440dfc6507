"""Messages of the server and both clients to users, read from their sources; what is not known before it is said is ``…``."""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from tests.conftest import ROOT

HOLE = "…"
_SERVER = ROOT / "gpa_lsp" / "editor"
_EXTENSION = ROOT / "editors" / "vscode" / "src"
_PLUGIN = ROOT / "editors" / "neovim" / "lua"

_ASKING = frozenset({"warn", "inform", "choose", "confirm", "show_message"})
"""Methods whose first argument is shown to people, where the receiver is no log."""


def list_said() -> dict[str, str]:
    """Every message, as :func:`simplify` writes it, and where it is said; those whose words come from elsewhere as ``FILE: EXPRESSION``."""
    found: dict[str, str] = {}
    for path, text in (*_read_server(), *_read_extension(), *_read_plugin()):
        found.setdefault(simplify(text), str(path.relative_to(ROOT)))
    return found


def simplify(text: str) -> str:
    """Drop what differs between clients: the first letter's case, the full stop, quotes, icons; what is filled in twice in a row counts once.

    >>> simplify("$(info) No kernel of `x`."), simplify("… of … is gone")
    ('no kernel of x', '… of … is gone')
    """
    plain = re.sub(r"\s+", " ", re.sub(r"[`\\\"]", "", text)).removeprefix("$(info) ").strip()
    plain = re.sub(f"{HOLE}{HOLE}+", HOLE, plain.rstrip(".").strip())
    return f"{plain[:1].lower()}{plain[1:]}"


# The server


def _read_server() -> Iterator[tuple[Path, str]]:
    for path in sorted(_SERVER.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name not in _ASKING:
                for text in _read_function(function, path):
                    yield path, text


def _read_function(function: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> Iterator[str]:
    known = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ASKING):
            continue
        if ast.unparse(node.func.value) == "logger" or not node.args:
            continue
        argument = node.args[0]
        value = known.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
        for text in _list_texts(value):
            yield text if re.search(r"[a-z]{2}", text) else f"{path.name}: {ast.unparse(argument)}"


def _list_texts(node: ast.expr) -> tuple[str, ...]:
    """Texts that an expression can have as its value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)
    if isinstance(node, ast.JoinedStr):
        return ("".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values),)
    if isinstance(node, ast.IfExp):
        return (*_list_texts(node.body), *_list_texts(node.orelse))
    if isinstance(node, ast.BinOp):
        return tuple(left + right for left, right in product(_list_texts(node.left), _list_texts(node.right)))
    return (HOLE,)


# The extension of Visual Studio Code

_SHOWN = re.compile(r"\b(?:show(?:Error|Warning|Information)Message|setStatusBarMessage|view\.say)\(")


def _read_extension() -> Iterator[tuple[Path, str]]:
    for path in sorted(_EXTENSION.glob("*.ts")):
        source = path.read_text(encoding="utf-8")
        for match in _SHOWN.finditer(source):
            argument = _cut_argument(source[match.end() :])
            texts = _list_literals(argument)
            names = re.findall(r"\b[A-Za-z]\w*\b", re.sub(r"\"[^\"]*\"", "", argument))
            for name in names if "?" not in argument else ():
                for value in re.findall(rf"\bconst {name}\b[^=;]*= ((?:\"[^\"]*\"|[^;])*);", source):
                    texts += _list_literals(value)
            texts = [text for text in texts if re.search(r"[a-z]{2} ", text) and "${" not in text]
            yield from ((path, text) for text in texts or [f"{path.name}: {argument}"])
        for value in re.findall(r"^const NOTHING\b[^=]*= \{(.*?)^\}", source, re.MULTILINE | re.DOTALL):
            yield from ((path, text) for text in _list_literals(value) if " " in text)


def _cut_argument(text: str) -> str:
    """The first argument of a call, from behind its parenthesis."""
    depth, quote = 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in '"`':
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}" or (character == "," and depth == 0):
            if depth == 0:
                return text[:at]
            depth -= 1
    return text


def _list_literals(code: str) -> list[str]:
    """Strings, those within the holes of others, too."""
    found = []
    for plain, template in re.findall(r"\"((?:[^\"\\]|\\.)*)\"|`((?:[^`\\]|\\.)*)`", code):
        if plain:
            found.append(plain)
        elif template:
            found.append(re.sub(r"\$\{[^}]*\}", HOLE, template))
            for hole in re.findall(r"\$\{([^}]*)\}", template):
                found += [one for one in re.findall(r"\"([^\"]*)\"", hole) if " " in one]
    return found


# The plugin of Neovim

_SAID = re.compile(r"\b(?:say|jump_along|pin)\((.*)|\breturn (.* (?:and|or) .*'.*)")


def _read_plugin() -> Iterator[tuple[Path, str]]:
    for path in sorted(_PLUGIN.rglob("*.lua")):
        for line in path.read_text(encoding="utf-8").splitlines():
            match = _SAID.search(line)
            if match is None or line.lstrip().startswith(("function", "local function")):
                continue
            for text in re.findall(r"'([^']*)'", match[1] or match[2]):
                if len(text.split()) > 2 and text[0].islower() and "%s:" not in text and "%d" not in text:
                    yield path, text.replace("%s", HOLE) + (HOLE if text.endswith(": ") else "")
