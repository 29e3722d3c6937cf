"""A drawing in pixels, on matplotlib: settings, axes, texts and keys that all figures share. Knows no data.

The settings of matplotlib are global: they are set to its defaults and to `_SETTINGS` under a lock while a figure is
drawn, so that neither the user's own settings nor another thread changes the bytes. Texts but numbers
never reach matplotlib, which would look for TeX and glyphs in a name: a key is drawn in the place of each.
"""

import io
import math
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.errors import ConfigurationError
from prefect_assay.reporting.plots.svg import INK, MUTED, PAPER, clean, themed
from prefect_assay.results.formats import molar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH: Final = 440
TITLE: Final = 13.0
TEXT: Final = 10.5
SMALL: Final = 9.5
LINE: Final = 1.2
_SALT: Final = "prefect-assay"
_SETTINGS: Final[dict[Any, Any]] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelpad": 0,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": PAPER,
    "font.size": TEXT,
    "lines.linewidth": LINE,
    "path.simplify_threshold": 0.25,
    "svg.fonttype": "none",
    "svg.hashsalt": _SALT,
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
_EM: Final = 0.54  # the mean width of a letter
_KEEP_HEAD: Final = 0.6
_ROUNDING: Final = 1e-6


class Sheet:
    """One figure. Positions are pixels from the left and from the top."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure  # noqa: PLC0415  an optional extra

        self.width, self.height = width, height
        self.texts: dict[str, str] = {}
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72)

    def axes(
        self, left: float, top: float, width: float, height: float, *, x: str = "", y: str = ""
    ) -> "Axes":
        """Axes in a rectangle; `x` and `y` are their titles, on fixed lines so that nothing has to be measured."""
        axes = self.figure.add_axes(
            (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        )
        if x:
            self.text(left + width / 2, top + height + 34, x, anchor="middle")
        if y:
            self.text(14, top + height / 2, y, anchor="middle", rotation=90)
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
        self.figure.text(
            x / self.width,
            1 - y / self.height,
            self.key_of(text),
            fontsize=size,
            color=color,
            ha={"start": "left", "middle": "center", "end": "right"}[anchor],
            va="baseline",
            fontweight=weight,
            rotation=rotation,
            rotation_mode="anchor",
        )

    def key_of(self, text: str) -> str:
        """What to draw in place of a text."""
        key = f"@{len(self.texts)}@"
        self.texts[key] = clean(text) or "(no name)"
        return key

    def line(self, xs: Sequence[float], ys: Sequence[float], **style: Any) -> None:
        """A line, or markers, outside all axes."""
        from matplotlib.lines import Line2D  # noqa: PLC0415  an optional extra

        across = [x / self.width for x in xs]
        down = [1 - y / self.height for y in ys]
        self.figure.add_artist(Line2D(across, down, **style))

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """A rectangle outside all axes, from its upper left corner."""
        from matplotlib.patches import Rectangle  # noqa: PLC0415  an optional extra

        across, down = x / self.width, 1 - (y + height) / self.height
        self.figure.add_artist(Rectangle((across, down), width / self.width, height / self.height, **style))

    def heading(self, name: str, lines: Iterable[str] = ()) -> None:
        """The name of the design, and below it what is said about it."""
        self.text(10, 19, shorten(name, self.width - 20, TITLE), size=TITLE, weight="bold")
        for number, line in enumerate(lines):
            self.text(10, 34 + 14 * number, line, color=MUTED)

    def legend(self, y: float, entries: Iterable[tuple[str, dict[str, Any]]], *, x: float = 10) -> None:
        """One row of samples with their words; a sample is a line or a marker."""
        for words, style in entries:
            is_line = style.get("linestyle", "-") != "none"
            self.line([x, x + 22] if is_line else [x + 11], [y - 3.5] * (2 if is_line else 1), **style)
            self.text(x + 27, y, words, size=SMALL)
            x += 27 + text_width(words, SMALL) + 14


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
    """The figure that `paint` puts on an empty sheet, as SVG; `title` describes it to those who cannot see it.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    with _settings():
        sheet = Sheet(width, height)
        paint(sheet)
        raw = io.StringIO()
        sheet.figure.savefig(raw, format="svg", metadata={"Date": None})
    return themed(raw.getvalue(), sheet.texts, title=title)


def text_width(text: str, size: float) -> float:
    """The approximate width in pixels: the font is chosen where the figure is shown."""
    return sum(size if unicodedata.east_asian_width(c) in "WF" else size * _EM for c in text)


def shorten(text: str, width: float, size: float) -> str:
    """Cut the middle out of a text that is too wide: designs of one campaign differ at both ends."""
    flat = clean(text)
    if text_width(flat, size) <= width:
        return flat
    room = width - size
    head = _fitting(flat, room * _KEEP_HEAD, size)
    tail = _fitting(flat[::-1], room * (1 - _KEEP_HEAD), size)[::-1]
    return f"{head}…{tail}"


def _fitting(text: str, width: float, size: float) -> str:
    used = 0.0
    for number, character in enumerate(text):
        used += text_width(character, size)
        if used > width:
            return text[:number]
    return text


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart, each as near to its own as its neighbours allow, in the same order."""
    order = sorted(range(len(positions)), key=positions.__getitem__)
    placed = [0.0] * len(positions)
    last = low - gap
    for index in order:
        placed[index] = last = max(positions[index], last + gap)
    limit = high + gap
    for index in reversed(order):
        placed[index] = limit = min(placed[index], limit - gap)
    return placed


def wrap(words: Iterable[str], width: float, size: float) -> list[str]:
    """Lines of words with commas between them, none wider than `width`; a word is never parted."""
    lines: list[str] = []
    for word in words:
        joined = f"{lines[-1]}, {word}" if lines else word
        if lines and text_width(joined, size) > width:
            lines[-1] += ","
            lines.append(word)
        else:
            lines[-1:] = [joined]
    return lines


def molar_axis(axes: "Axes", low: float, high: float, which: str) -> None:
    """A logarithmic axis of concentrations, with a tick per decade that says its unit."""
    first, last = math.ceil(math.log10(low) - _ROUNDING), math.floor(math.log10(high) + _ROUNDING)
    decades = [float(f"1e{power}") for power in range(first, last + 1)]
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    getattr(axes, f"set_{which}ticks")(decades, [_decade(value) for value in decades])
    getattr(axes, f"set_{which}ticks")([], minor=True)


def _decade(value: float) -> str:
    number, unit = molar(value).split(" ")
    return f"{float(number):g} {unit}"
