"""SVG as the figures write it: colours, escaped texts, short numbers, and the finished document. Knows no data.

Coordinates are rounded to a tenth of a pixel. Each colour of the palette is an attribute, for paper and for drawing
programs; a style sheet changes it where the reader prefers a dark scheme. The background is part of the drawing and
changes with the lines, so a figure is legible on a page of either scheme.
"""

import math
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Final
from urllib.parse import quote

INK: Final = "#1b1f24"
MUTED: Final = "#59616b"
GRID: Final = "#d5d9de"
PAPER: Final = "#ffffff"
# Okabe and Ito (2008), https://jfly.uni-koeln.de/color/; their yellow is too light for white paper.
BLUE: Final = "#0072b2"
VERMILLION: Final = "#d55e00"
GREEN: Final = "#009e73"
PURPLE: Final = "#cc79a7"
ORANGE: Final = "#e69f00"
SKY: Final = "#56b4e9"
# Private characters, written as symbols with an index.
KD: Final = "\ue000"
TM: Final = "\ue001"

_DARK: Final = {INK: "#eceff2", MUTED: "#a9b1ba", GRID: "#434a52", PAPER: "#171a1e", BLUE: SKY, SKY: BLUE}
_FONTS: Final = "Helvetica,Arial,'Liberation Sans','Noto Sans',sans-serif"
_SYMBOLS: Final = {KD: ("K", "D"), TM: ("T", "m")}
_SYMBOL: Final = re.compile(f"([{KD}{TM}])")
_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
_NOT_IN_XML: Final = "\ufffe\uffff"
_PLAIN_IN_ADDRESSES: Final = "/:=;,.-"  # neither Markdown nor an address gives them another meaning there
_KEPT: Final = f"{KD}{TM}\u200d"  # the last joins the parts of one emoji
_TOLERANCE: Final = 2.5  # tenths of a pixel that a line may pass a point by, up or down


def make_markdown_image(svg: str, alt: str) -> str:
    """An inline image for a Markdown artifact: the figure as a data address, with `alt` as its description.

    The address is escaped text: in base64 the database, which keeps each artifact twice, could not compress it.
    """
    words = re.sub(r"[\[\]\\`*_<>!|&]", " ", write_plain(alt))  # a name must not end the image or make a link
    return f"![{' '.join(words.split())}](data:image/svg+xml,{quote(svg, safe=_PLAIN_IN_ADDRESSES)})"


def clean_line(text: str) -> str:
    """One line, without characters that XML forbids or that change the direction of the text after them."""
    return "".join(
        character
        for character in " ".join(text.split())
        if character in _KEPT
        or (unicodedata.category(character) not in _CONTROLS and character not in _NOT_IN_XML)
    )


def write_plain(text: str) -> str:
    """The text on one line, with symbols as letters: `K_D`."""
    return _SYMBOL.sub(lambda match: "_".join(_SYMBOLS[match[0]]), clean_line(text))


def write_words(text: str) -> str:
    """The content of a text element: escaped, with symbols as letters and a lowered index."""
    first, *others = _SYMBOL.split(escape(clean_line(text) or "(no name)", quote=False))
    written = [first]
    for symbol, after in zip(others[::2], others[1::2], strict=True):
        letter, index = _SYMBOLS[symbol]
        written.append(
            f'<tspan font-style="italic">{letter}</tspan><tspan dy="2.5" font-size="75%">{index}</tspan>'
        )
        written.append(f'<tspan dy="-2.5">{after}</tspan>' if after else "")
    return "".join(written)


def write_element(name: str, content: str = "", **attributes: str | float) -> str:
    """An element around `content`, which is markup. Numbers are in pixels; an attribute that is empty or 0 is left out."""
    written = "".join(
        f' {key.replace("_", "-")}="{escape(value) if isinstance(value, str) else write_pixels(value)}"'
        for key, value in attributes.items()
        if value
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def write_pixels(value: float) -> str:
    """At most one decimal, as short as SVG allows: `-0.30` gives `-.3`."""
    return _write_tenths(round(value * 10))


@cache
def _write_tenths(tenths: int) -> str:
    whole, rest = divmod(abs(tenths), 10)
    digits = f"{whole or ''}.{rest}" if rest else str(whole)
    return f"-{digits}" if tenths < 0 else digits


def write_path(points: Iterable[tuple[float, float]]) -> str:
    """A line through points in pixels, as steps; a point that is not finite ends it, and the next one begins another."""
    parts: list[list[tuple[int, int]]] = [[]]
    for x, y in points:
        if math.isfinite(x + y):
            parts[-1].append((round(x * 10), round(y * 10)))
        elif parts[-1]:
            parts.append([])
    return "".join(_write_part(_drop_straight(part)) for part in parts if part).replace(" -", "-")


def _write_part(points: list[tuple[int, int]]) -> str:
    x, y = points[0]
    steps = []
    for next_x, next_y in points[1:]:
        steps.append(f"{_write_tenths(next_x - x)} {_write_tenths(next_y - y)}")
        x, y = next_x, next_y
    start = f"M{_write_tenths(points[0][0])} {_write_tenths(points[0][1])}"
    return f"{start}l{' '.join(steps)}" if steps else start


def _drop_straight(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The points without those that a straight line between kept ones passes within the tolerance."""
    kept = points[:1]
    (x, y), last = points[0], points[0]
    low, high = -math.inf, math.inf  # the slopes that pass all points since the last kept one
    for point in points[1:]:
        across, down = point[0] - x, point[1] - y
        if across <= 0 or not low <= down / across <= high:
            if last != kept[-1]:
                kept.append(last)
            x, y = last
            across, down = point[0] - x, point[1] - y
            low, high = (-math.inf, math.inf) if across > 0 else (math.inf, -math.inf)
        if across > 0:
            low, high = max(low, (down - _TOLERANCE) / across), min(high, (down + _TOLERANCE) / across)
        last = point
    return [*kept, last] if last != kept[-1] else kept


def write_document(width: float, height: float, parts: Iterable[str], *, title: str) -> str:
    """The finished figure; `title` describes it for screen readers."""
    paper = write_element("rect", width=width, height=height, fill=PAPER)
    drawing = "".join([paper, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="assay-plot" role="img" style="max-width:100%;height:auto" '
        f'font-family="{_FONTS}" font-size="10" fill="none" stroke-linejoin="round" '
        f'viewBox="0 0 {write_pixels(width)} {write_pixels(height)}" '
        f'width="{write_pixels(width)}" height="{write_pixels(height)}">'
        f"<title>{escape(write_plain(title), quote=False)}</title>"
        f"<style>{_write_dark_rules(drawing)}</style>{drawing}</svg>"
    )


def _write_dark_rules(drawing: str) -> str:
    """The dark scheme of the colours in use. A style sheet holds for the whole page: the rules name the class."""
    rules = [
        f'.assay-plot [{name}="{color}"]{{{name}:{dark}}}'
        for color, dark in _DARK.items()
        for name in ("fill", "stroke")
        if f'{name}="{color}"' in drawing
    ]
    return f"@media screen and (prefers-color-scheme:dark){{{''.join(rules)}}}"
