"""Broken inputs without end: pieces of a corpus and of a dictionary, cut, joined, repeated and damaged by a seeded hand.

It knows no parser. Half of what it makes is close to the corpus, so that it gets past the first character.
"""

import random
from collections.abc import Sequence

LONGEST = 6_000
# Characters that parsers stumble over: ends of text, quotes, wide and unpaired code points, case that changes length.
ODD = (
    "\0", "\t", "\n", "\r", "\x1f", "\x7f", "\x85", "\xa0", "\u2028", "\ufeff", "\ud800", "\udfff", "\U0001f9ec", "é", "ß",
    "\u0130", "\u0131", "\u017f", "\u03a9", "٣", "²", "½", "0", "9", "-", "+", ".", "e", "E", '"', "'", "\\", "`", "/", "*", "%", "_", "$", "?",
    "(", ")", "[", "]", "{", "}", "<", ">", ",", ";", ":", "|", "=", "&", "#", "@", "!", "^", "~", " ",
)  # fmt: skip


class Mutator:
    """A source of inputs.

    Args:
        seed: the same seed gives the same inputs.
        corpus: well-formed inputs.
        pieces: words of the language, to be put in and joined.
    """

    def __init__(self, seed: int, corpus: Sequence[str], pieces: Sequence[str] = ()) -> None:
        self.chance = random.Random(seed)
        self._corpus = list(corpus)
        self._pieces = [*pieces, *ODD]

    def text(self) -> str:
        """The next input, at most `LONGEST` characters."""
        chance = self.chance
        kind = chance.random()
        if kind < 0.03:
            return chance.choice(self._corpus)
        if kind < 0.15:
            return "".join(chance.choices(self._pieces, k=chance.randint(0, 30)))[:LONGEST]
        text = chance.choice(self._corpus)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 5, 9))):
            text = self._damaged(text)
        return text[:LONGEST]

    def data(self) -> bytes:
        """The next input as bytes: mostly UTF-8, sometimes not."""
        text = self.text()
        if self.chance.random() < 0.2:
            return text.encode("latin-1", "replace")
        return text.encode("utf-8", "surrogatepass")

    def _damaged(self, text: str) -> str:
        chance = self.chance
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.choice((0, 0, 1, 1, 2, 5, 20, 200)))
        match chance.randrange(8):
            case 0 | 1:
                middle = chance.choice(self._pieces)
            case 2:
                middle = ""
            case 3:
                middle = text[start:end] * chance.choice((2, 2, 3, 10, 200))
            case 4:
                other = chance.choice(self._corpus)
                middle = other[chance.randint(0, len(other)) :][: chance.choice((1, 5, 30, 400))]
            case 5:
                middle = text[start:end][::-1]
            case 6:
                middle = chance.choice((str.upper, str.lower, str.swapcase))(text[start:end])
            case _:
                middle = chr(chance.choice((chance.randrange(32, 127), chance.randrange(0x110000))))
        return text[:start] + middle + text[end:]
