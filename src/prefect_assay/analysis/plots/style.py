"""A drawing in pixels, on matplotlib: settings, axes, texts and legends that all figures share. Knows no data.

The settings of matplotlib are global. While a figure is drawn, under a lock, they are matplotlib's defaults and
`_SETTINGS`: neither the user's settings nor another thread changes the bytes. Only tick labels reach matplotlib, which
would look for TeX and for glyphs in a name. A key is drawn in the place of every other text.
"""

from __future__ import annotations

import io
import math
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.analysis.plots.svg import (
    INK,
    MUTED,
    PAPER,
    clean,
    themed,
)
from prefect_assay.analysis.results.formats import molar
from prefect_assay.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH: Final = 440  # of every figure: at 400 pixels a text is as large as on a page of text
TITLE: Final = 13.0
TEXT: Final = 11.0
SMALL: Final = 10.0
Style = dict[str, Any]
_SETTINGS: Final[dict[Any, Any]] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": PAPER,
    "font.size": TEXT,
    "lines.linewidth": 1.2,
    "path.simplify_threshold": 0.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "prefect-assay",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": SMALL,
}
_LOCK: Final = threading.Lock()
LETTER: Final = 0.56  # the mean width of a letter, in its size
CAPITAL: Final = 0.7  # that of a capital; both of Helvetica
_WIDE: Final = {"M": 0.84, "W": 0.95, "m": 0.84, "w": 0.73, "%": 0.9, "@": 1.02, "I": 0.29}
_KEEP_HEAD: Final = 0.6
_ROUNDING: Final = 1e-6
_TICKS: Final = 6  # so many labels of concentrations fit below an axis
_FEWEST_TICKS: Final = 2


class Sheet:
    """One figure. Positions are pixels from the left and from the top."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure  # noqa: PLC0415  an optional extra

        self.width, self.height = width, height
        self.texts: dict[str, str] = {}
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72)

    def axes(self, left: float, top: float, width: float, height: float, *, x: str = "", y: str = "") -> Axes:
        """Axes in a rectangle, with their titles."""
        bottom = 1 - (top + height) / self.height
        axes = self.figure.add_axes((left / self.width, bottom, width / self.width, height / self.height))
        axes.set_title("", y=1)  # titles are texts of the sheet: a place for theirs need not be measured
        axes.xaxis.set_label_coords(0, 0)
        axes.yaxis.set_label_coords(0, 0)
        if x:
            self.text(left + width / 2, top + height + 34, shorten(x, width, TEXT), anchor="middle")
        if y:
            self.text(14, top + height / 2, shorten(y, height + 30, TEXT), anchor="middle", rotation=90)
        return axes

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        color: str = INK,
        anchor: str = "start",
        weight: str = "normal",
        rotation: float = 0,
    ) -> None:
        """A text on its baseline."""
        key = f"@{len(self.texts)}@"
        self.texts[key] = clean(text) or "(no name)"
        self.figure.text(
            x / self.width,
            1 - y / self.height,
            key,
            fontsize=size,
            color=color,
            ha={"start": "left", "middle": "center", "end": "right"}[anchor],
            va="baseline",
            fontweight=weight,
            rotation=rotation,
            rotation_mode="anchor",
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], **style: Any) -> None:
        """A line, or markers, outside all axes."""
        from matplotlib.lines import Line2D  # noqa: PLC0415  an optional extra

        across, down = [x / self.width for x in xs], [1 - y / self.height for y in ys]
        self.figure.add_artist(Line2D(across, down, **style))

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """A rectangle outside all axes, from its upper left corner."""
        from matplotlib.patches import Rectangle  # noqa: PLC0415  an optional extra

        corner = (x / self.width, 1 - (y + height) / self.height)
        self.figure.add_artist(Rectangle(corner, width / self.width, height / self.height, **style))

    def heading(self, name: str, lines: Iterable[str] = ()) -> None:
        """What the figure shows, and below it what is said about it."""
        self.text(10, 19, shorten(name, self.width - 20, TITLE * 1.1), size=TITLE, weight="bold")
        for number, line in enumerate(lines):
            self.text(10, 34 + 14 * number, line, color=MUTED)

    def legend(self, y: float, entries: Iterable[tuple[str, Style]]) -> None:
        """One row of samples with their words; a sample is a line or a marker."""
        x = 10.0
        for words, style in entries:
            sample = [5] if style.get("linestyle") == "none" else [0, 22]
            self.line([x + place for place in sample], [y - 3.5 for _ in sample], **style)
            x += 4 + max(10, sample[-1])
            self.text(x, y, words, size=SMALL)
            x += 12 + text_width(words, SMALL)


@contextmanager
def _settings() -> Iterator[None]:
    try:
        import matplotlib  # noqa: ICN001, PLC0415  an optional extra
    except ImportError:
        raise ConfigurationError.missing_extra("report", "drawing a figure") from None
    with _LOCK, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def draw(width: float, height: float, paint: Callable[[Sheet], None], *, title: str) -> str:
    """The figure that `paint` puts on an empty sheet, as SVG; `title` is its description for screen readers.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    with _settings():
        sheet = Sheet(width, height)
        paint(sheet)
        raw = io.StringIO()
        sheet.figure.savefig(raw, format="svg", metadata={"Date": None})
    return themed(raw.getvalue(), sheet.texts, title=title)


def molar_axis(axes: Axes, low: float, high: float, which: str) -> None:
    """A logarithmic axis of concentrations in M with a tick per decade, more or less often where that fits better."""
    first, last = math.ceil(math.log10(low) - _ROUNDING), math.floor(math.log10(high) + _ROUNDING)
    decades = [float(f"1e{power}") for power in range(first, last + 1)]
    ticks = decades[:: max(1, math.ceil(len(decades) / _TICKS))]
    if len(decades) < _FEWEST_TICKS:
        finer = [float(f"{digit}e{power}") for power in range(first - 1, last + 1) for digit in (1, 2, 5)]
        ticks = [value for value in finer if low <= value <= high]
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    getattr(axes, f"set_{which}ticks")(ticks, [decade(value) for value in ticks])
    getattr(axes, f"set_{which}ticks")([], minor=True)


def decade(value: float) -> str:
    """A round concentration: `1e-8` gives `10 nM`."""
    number, unit = molar(value).split(" ")
    return f"{float(number):g} {unit}"


def text_width(text: str, size: float) -> float:
    """The approximate width in pixels: the font is chosen where the figure is shown."""
    return sum(size if unicodedata.east_asian_width(c) in "WF" else size * _letter_width(c) for c in text)


def _letter_width(character: str) -> float:
    """The width in sizes: capitals are wider than other letters."""
    return _WIDE.get(character, CAPITAL if character.isupper() else LETTER)


def shorten(text: str, width: float, size: float) -> str:
    """Cut the middle out of a text that is too wide: names of one campaign differ at both ends."""
    flat = clean(text)
    if text_width(flat, size) <= width:
        return flat
    room = width - size
    head = _fitting(flat, room * _KEEP_HEAD, size)
    tail = _fitting(flat[::-1], room * (1 - _KEEP_HEAD), size)[::-1]
    return f"{head}…{tail}"


def two_lines(text: str, width: float, size: float) -> list[str]:
    """The text on at most two lines, the second shortened, parted after a separator near the end of the first."""
    flat = clean(text)
    first = _fitting(flat, width, size)
    if first == flat:
        return [flat]
    cut = max(first.rfind(separator) for separator in " _-") + 1
    cut = cut if cut > len(first) / 2 else len(first)
    return [flat[:cut].strip(), shorten(flat[cut:], width, size)]


def _fitting(text: str, width: float, size: float) -> str:
    used = 0.0
    for number, character in enumerate(text):
        used += text_width(character, size)
        if used > width:
            return text[:number]
    return text


def wrap(words: Iterable[str], width: float, size: float, separator: str = ", ") -> list[str]:
    """Lines no wider than `width`; a word is not parted, but shortened where it is wider."""
    lines: list[str] = []
    for word in (shorten(word, width, size) for word in words):
        joined = f"{lines[-1]}{separator}{word}" if lines else word
        if lines and text_width(joined, size) > width:
            lines[-1] += separator.rstrip()
            lines.append(word)
        else:
            lines[-1:] = [joined]
    return lines


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
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
