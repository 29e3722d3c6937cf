"""The filter and sort language of the lists (contract 4.1): text to a tree. Knows neither columns nor SQL.

expression := name "(" [expression {"," expression}] ")" | word | string
string     := '"' characters '"'      with backslash escapes; or single quotes
"""

import re
from dataclasses import dataclass
from typing import Final

from assay_lab.kernel.refusals import Refusal

LENGTH_MAX: Final = 4_000
DEPTH_MAX: Final = 16
NODES_MAX: Final = 400

_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[(),])|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<word>[^\s(),"]+))""",
    re.DOTALL,
)
_MORE_WORDS = re.compile(r"""(?:\s+[^\s(),"'][^\s(),"]*)+""")


@dataclass(frozen=True, slots=True)
class Atom:
    """A word or a quoted string, and its position."""

    text: str
    position: int
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """`name(arguments)`, and its position."""

    name: str
    arguments: tuple["Atom | Node", ...]
    position: int


Expression = Atom | Node


def refusal_at(what: str, position: int, message: str) -> Refusal:
    """A 400 that names the position of an error, from 0."""
    return Refusal(400, f"{what}: {message} at position {position}")


class _Parser:
    def __init__(self, text: str, what: str) -> None:
        self._what = what
        self._text = text
        self._position = 0
        self._nodes = 0
        if len(text) > LENGTH_MAX:
            raise refusal_at(what, LENGTH_MAX, f"longer than {LENGTH_MAX} characters")

    def fail(self, message: str, position: int | None = None) -> Refusal:
        return refusal_at(self._what, self._position if position is None else position, message)

    def _next_token(self) -> re.Match[str]:
        """The next token; 400 at the end or at a character of none."""
        token = _TOKEN.match(self._text, self._position)
        if token is None:
            raise self.fail("unexpected end or character")
        self._position = token.end()
        return token

    def take_mark_if(self, mark: str) -> bool:
        """Consume the mark if it is next; say whether it was."""
        token = _TOKEN.match(self._text, self._position)
        if token is None or token["mark"] != mark:
            return False
        self._position = token.end()
        return True

    def finish(self) -> None:
        if self._text[self._position :].strip():
            raise self.fail("unexpected text")

    def expression(self, depth: int = 0) -> Expression:
        self._nodes += 1
        if depth > DEPTH_MAX:
            raise self.fail(f"nested deeper than {DEPTH_MAX}")
        if self._nodes > NODES_MAX:
            raise self.fail(f"more than {NODES_MAX} parts")
        token = self._next_token()
        for quotes in ("double", "single"):
            if token[quotes] is not None:
                text = re.sub(r"\\(.)", r"\1", token[quotes], flags=re.DOTALL)
                return Atom(text, token.start(quotes), quoted=True)
        if token["word"] is None:
            raise self.fail(f"unexpected {token['mark']!r}", token.start("mark"))
        word, position = token["word"], token.start("word")
        if self.take_mark_if("("):
            return Node(word, self._arguments(depth), position)
        if depth > 0 and (more := _MORE_WORDS.match(self._text, self._position)):
            # A bare value may hold spaces: the contract has no quotes (4.1).
            self._position = more.end()
            word = self._text[position : more.end()]
        return Atom(word, position)

    def _arguments(self, depth: int) -> tuple[Expression, ...]:
        arguments: list[Expression] = []
        if self.take_mark_if(")"):
            return ()
        while True:
            arguments.append(self.expression(depth + 1))
            if self.take_mark_if(")"):
                return tuple(arguments)
            if not self.take_mark_if(","):
                raise self.fail("expected ',' or ')'")


def parse_expression(text: str, what: str = "filter") -> Expression:
    """One expression; a 400 names the position of an error."""
    parser = _Parser(text, what)
    expression = parser.expression()
    parser.finish()
    return expression


def parse_sort(text: str) -> list[Expression]:
    """Expressions separated by commas, at least one."""
    parser = _Parser(text, "sort")
    expressions = [parser.expression()]
    while parser.take_mark_if(","):
        expressions.append(parser.expression())
    parser.finish()
    return expressions
