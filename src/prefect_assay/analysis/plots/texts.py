"""Texts that fit: their width, cut or wrapped where they are too wide, and kept apart. Knows no drawing.

The width is approximate, because the font is chosen where the figure is shown.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from prefect_assay.analysis.plots.svg import clean_line

_LETTER: Final = 0.56  # the mean width of a letter, in its size
_CAPITAL: Final = 0.7  # that of a capital; both of Helvetica
_WIDE: Final = {"M": 0.84, "W": 0.95, "m": 0.84, "w": 0.73, "%": 0.9, "@": 1.02, "I": 0.29}
_KEEP_HEAD: Final = 0.6


def measure_text(text: str, size: float) -> float:
    """The approximate width in pixels."""
    return sum(map(_measure_letter, text)) * size


def _measure_letter(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1
    return _WIDE.get(character, _CAPITAL if character.isupper() else _LETTER)


def shorten_text(text: str, width: float, size: float) -> str:
    """Cut the middle out of a text that is too wide: names of one campaign differ at both ends."""
    flat = clean_line(text)
    if measure_text(flat, size) <= width:
        return flat
    room = width - size
    head = _fit_start(flat, room * _KEEP_HEAD, size)
    tail = _fit_start(flat[::-1], room * (1 - _KEEP_HEAD), size)[::-1]
    return f"{head}…{tail}"


def split_in_two(text: str, width: float, size: float) -> list[str]:
    """The text on at most two lines, the second shortened, parted after a separator near the end of the first."""
    flat = clean_line(text)
    first = _fit_start(flat, width, size)
    if first == flat:
        return [flat]
    cut = max(first.rfind(separator) for separator in " _-") + 1
    cut = cut if cut > len(first) / 2 else len(first)
    return [flat[:cut].strip(), shorten_text(flat[cut:], width, size)]


def _fit_start(text: str, width: float, size: float) -> str:
    used = 0.0
    for number, character in enumerate(text):
        used += measure_text(character, size)
        if used > width:
            return text[:number]
    return text


def wrap_words(words: Iterable[str], width: float, size: float, separator: str = ", ") -> list[str]:
    """Lines no wider than `width`; a word is not parted, but shortened where it is wider."""
    lines: list[str] = []
    for word in (shorten_text(word, width, size) for word in words):
        joined = f"{lines[-1]}{separator}{word}" if lines else word
        if lines and measure_text(joined, size) > width:
            lines[-1] += separator.rstrip()
            lines.append(word)
        else:
            lines[-1:] = [joined]
    return lines


def spread_positions(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart, in the same order, each as near to its own as the others allow."""
    order = sorted(range(len(positions)), key=positions.__getitem__)
    placed = [0.0] * len(positions)
    last = low - gap
    for index in order:
        placed[index] = last = max(positions[index], last + gap)
    limit = high + gap
    for index in reversed(order):
        placed[index] = limit = min(placed[index], limit - gap)
    return placed
