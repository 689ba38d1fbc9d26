"""Finds the regular expressions of the code base, and long texts on which a careless one takes long."""

import ast
import re
import re._constants as opcodes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT, sources

METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
MENTIONED = re.compile(r"\bre\.")  # in the source of a module that uses any; parsing the others takes seconds
LENGTH = 100_000
REPEATS = (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT, opcodes.POSSESSIVE_REPEAT)


def uses() -> Iterator[tuple[str, str, str | bytes, int]]:
    """(where, method, pattern, flags) of every regular expression, once for each way it is used."""
    for path in sources():
        source = path.read_text()
        if not MENTIONED.search(source):
            continue
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        compiled, constants = {}, _constants(tree)
        for node in nodes:
            if isinstance(node, ast.Call) and _is_of_re(node.func, ("compile",)):
                compiled[id(node)] = node
        named = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign) and id(node.value) in compiled
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in compiled.values():
            names = [name for name, value in named.items() if value is node]
            used = {method for name in names for method in _methods(nodes, name)} or {"search", "fullmatch"}
            for method in sorted(used):
                yield (_where(path, node), method, *_pattern(node, constants))
        for node in nodes:
            if isinstance(node, ast.Call) and _is_of_re(node.func, METHODS):
                assert isinstance(node.func, ast.Attribute)
                yield (_where(path, node), node.func.attr, *_pattern(node, constants))


def _where(path: Path, node: ast.Call) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def _is_of_re(function: ast.expr, names: tuple[str, ...]) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in names
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
    )


def _methods(nodes: list[ast.AST], name: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            yield node.attr


def _constants(tree: ast.Module) -> dict[str, str]:
    """The module's own strings, of which patterns are made."""
    values: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            with suppress(NameError):  # made of what another module has: no pattern of ours is
                value = eval(ast.unparse(node.value), dict(values))
                values |= {target.id: value for target in node.targets if isinstance(target, ast.Name)}
    return values


def _pattern(node: ast.Call, constants: dict[str, str]) -> tuple[str | bytes, int]:
    flags = next((k.value for k in node.keywords if k.arg == "flags"), None)
    if flags is None and _is_of_re(node.func, ("compile",)) and len(node.args) > 1:
        flags = node.args[1]
    number = eval(ast.unparse(flags), {"re": re}) if flags is not None else 0
    return eval(ast.unparse(_Escaped().visit(node.args[0])), dict(constants)), int(number)


class _Escaped(ast.NodeTransformer):
    """Puts words in the place of text that a pattern takes literally: it repeats nothing."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert "re.escape" in ast.unparse(node), "patterns are made of constants and escaped text"
        return ast.Constant("one|two")


def pumps(pattern: str | bytes, flags: int) -> set[str]:
    """A character of everything that the pattern repeats without a limit, and short texts that whole groups repeat."""
    samples: set[str] = set()

    def walk(items: Any) -> None:
        for operation, argument in items:
            if operation in REPEATS:
                if argument[1] is opcodes.MAXREPEAT:
                    samples.add(sample(argument[2]))
                walk(argument[2])
            elif operation is opcodes.SUBPATTERN:
                walk(argument[3])
            elif operation is opcodes.BRANCH:
                for branch in argument[1]:
                    walk(branch)
            elif operation in (opcodes.ASSERT, opcodes.ASSERT_NOT):
                walk(argument[1])

    walk(parser.parse(pattern, flags))
    return samples


CANDIDATES = "0a1A -_.:,/\t\n[]{}\\\"'?#@+=é"


def sample(items: Any) -> str:
    """A short text that a part of a pattern matches."""
    text = ""
    for operation, argument in items:
        if operation is opcodes.SUBPATTERN:
            text += sample(argument[3])
        elif operation is opcodes.BRANCH:
            text += sample(argument[1][0])
        elif operation in REPEATS:
            text += sample(argument[2]) * max(1, argument[0])
        elif operation is opcodes.LITERAL:
            text += chr(argument)
        elif operation not in (opcodes.AT, opcodes.ASSERT, opcodes.ASSERT_NOT, opcodes.GROUPREF):
            text += next((c for c in CANDIDATES if _matches(operation, argument, c)), "a")
    return text


def _matches(operation: Any, argument: Any, character: str) -> bool:
    if operation is opcodes.NOT_LITERAL:
        return ord(character) != argument
    if operation is opcodes.ANY:
        return character != "\n"
    negated = any(kind is opcodes.NEGATE for kind, _ in argument)
    return _in(argument, character) is not negated


def _in(items: Any, character: str) -> bool:
    classes = {opcodes.CATEGORY_DIGIT: r"\d", opcodes.CATEGORY_SPACE: r"\s", opcodes.CATEGORY_WORD: r"\w"}
    for kind, argument in items:
        if kind is opcodes.LITERAL and ord(character) == argument:
            return True
        if kind is opcodes.RANGE and argument[0] <= ord(character) <= argument[1]:
            return True
        if kind is opcodes.CATEGORY and re.match(classes.get(argument, r"\W"), character):
            return True
    return False


def attacks(pattern: str | bytes, flags: int) -> Iterator[str | bytes]:
    for text in _texts(pattern, flags):
        yield text if isinstance(pattern, str) else text.encode("latin-1")


def _texts(pattern: str | bytes, flags: int) -> Iterator[str]:
    beginning = sample(parser.parse(pattern, flags))
    for pump in pumps(pattern, flags) - {""}:
        run = pump * (LENGTH // len(pump))
        for before in ("", beginning):
            for behind in ("", "\0", "\n!"):
                yield before + run + behind
