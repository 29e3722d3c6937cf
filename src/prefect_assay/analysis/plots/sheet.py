"""A drawing in pixels: texts, lines, markers, legends, and panels with axes. Knows no data."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from prefect_assay.analysis.plots.scales import Scale
from prefect_assay.analysis.plots.svg import (
    GRID,
    INK,
    MUTED,
    write_document,
    write_element,
    write_path,
    write_pixels,
    write_words,
)
from prefect_assay.analysis.plots.texts import measure_text, shorten_text

WIDTH: Final = 440  # of every figure: at 400 pixels a text is as large as on a page of text
TITLE: Final = 13.0
TEXT: Final = 11.0
SMALL: Final = 10.0  # the document's own size
DASHED: Final = "4 2"
DOTTED: Final = "1 2"
_TICK: Final = 3.5
_GAP: Final = (math.nan, math.nan)
_SHAPES: Final = {  # corners, in half a size from the middle
    "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "left": ((-1, 0), (1, -1), (1, 1)),
    "right": ((1, 0), (-1, 1), (-1, -1)),
    "up": ((0, -1), (1, 1), (-1, 1)),
    "down": ((0, 1), (-1, -1), (1, -1)),
    "cross": ((-1, -1), (1, 1), _GAP, (-1, 1), (1, -1)),
}
Point = tuple[float, float]
Shape = Literal["circle", "diamond", "left", "right", "up", "down", "cross"]


@dataclass(frozen=True, slots=True)
class Line:
    """How a line is drawn; `dash` is empty for a solid one."""

    color: str = INK
    width: float = 1.2
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Marker:
    """How a point is drawn. With an `edge`, `color` is the colour inside."""

    shape: Shape = "circle"
    color: str = INK
    size: float = 6
    edge: str = ""

    def reshape(self, shape: Shape) -> "Marker":
        """The marker in another shape."""
        return replace(self, shape=shape)


_GRID: Final = Line(GRID, 0.7)
_AXIS: Final = Line(MUTED, 0.8)
_NO_EDGE: Final = Line("", 0)


class Sheet:
    """One figure. Positions are pixels from the left and from the top."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def write_svg(self, title: str) -> str:
        """The figure as SVG; `title` describes it for screen readers."""
        return write_document(self.width, self.height, self._parts, title=title)

    def add_text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        color: str = INK,
        anchor: Literal["", "middle", "end"] = "",
        is_bold: bool = False,
        is_vertical: bool = False,
    ) -> None:
        """A text on its baseline."""
        turned = f"rotate(-90 {write_pixels(x)} {write_pixels(y)})" if is_vertical else ""
        self._add(
            "text",
            write_words(text),
            x=x,
            y=y,
            fill=color,
            font_size="" if size == SMALL else size,
            font_weight="bold" if is_bold else "",
            text_anchor=anchor,
            transform=turned,
        )

    def add_line(self, points: Iterable[Point], line: Line) -> None:
        """A line through points; one that is not finite leaves a gap."""
        if path := write_path(points):
            self._add("path", d=path, stroke=line.color, stroke_width=line.width, stroke_dasharray=line.dash)

    def add_markers(self, points: Iterable[Point], marker: Marker) -> None:
        """A marker at each point that is finite."""
        if drawn := "".join(_write_marker(x, y, marker) for x, y in points if math.isfinite(x + y)):
            is_filled = marker.shape != "cross"
            edge = marker.edge if is_filled else marker.color
            self._add("g", drawn, fill=marker.color if is_filled else "", stroke=edge)

    def add_box(
        self, x: float, y: float, width: float, height: float, *, fill: str = "", edge: Line = _NO_EDGE
    ) -> None:
        """A rectangle, from its upper left corner."""
        self._add(
            "rect",
            x=x,
            y=y,
            width=width,
            height=height,
            fill=fill,
            stroke=edge.color,
            stroke_width=edge.width,
            stroke_dasharray=edge.dash,
        )

    def add_heading(self, name: str, lines: Iterable[str] = ()) -> None:
        """What the figure shows, and below it what is said about it."""
        self.add_text(10, 19, shorten_text(name, self.width - 20, TITLE * 1.1), size=TITLE, is_bold=True)
        for number, line in enumerate(lines):
            self.add_text(10, 34 + 14 * number, line, color=MUTED)

    def add_legend(self, y: float, entries: Iterable[tuple[str, Line | Marker]]) -> None:
        """One row of samples with their words."""
        x = 10.0
        for words, sample in entries:
            if isinstance(sample, Line):
                self.add_line([(x, y - 3.5), (x + 22, y - 3.5)], sample)
                x += 26
            else:
                self.add_markers([(x + 5, y - 3.5)], sample)
                x += 14
            self.add_text(x, y, words, size=SMALL)
            x += 12 + measure_text(words, SMALL)

    def add_panel(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        x: Scale,
        y: Scale,
        *,
        grid: Literal["", "x", "y"] = "",
        is_labeled_above: bool = False,
    ) -> "Panel":
        """A rectangle with its axes."""
        panel = Panel(self, left, top, width, height, x, y)
        right, bottom = left + width, top + height
        across = [(panel.place_x(value), label) for value, label in x.ticks]
        down = [(panel.place_y(value), label) for value, label in y.ticks]
        if grid == "x":
            self._add_lines((((place, top), (place, bottom)) for place, _ in across), _GRID)
        elif grid == "y":
            self._add_lines((((left, place), (right, place)) for place, _ in down), _GRID)
        axes: list[tuple[Point, Point]] = []
        for edge, outwards in ((bottom, _TICK), (top, -_TICK))[: 1 + is_labeled_above]:
            axes += [((left, edge), (right, edge))]
            axes += [((place, edge), (place, edge + outwards)) for place, _ in across]
            if x.title:
                baseline = edge + (14.5 if outwards > 0 else -9.5)
                self._add_labels(((place, baseline, label) for place, label in across), "middle")
        if down:
            axes += [((left, top), (left, bottom))]
            axes += [((left - _TICK, place), (left, place)) for place, _ in down]
            self._add_labels(((left - 7, place + 3.5, label) for place, label in down), "end")
        self._add_lines(axes, _AXIS)
        if x.title:
            self.add_text(left + width / 2, bottom + 34, shorten_text(x.title, width, TEXT), anchor="middle")
        if y.title:
            title = shorten_text(y.title, height + 30, TEXT)
            self.add_text(14, top + height / 2, title, anchor="middle", is_vertical=True)
        return panel

    def _add_lines(self, pairs: Iterable[tuple[Point, Point]], line: Line) -> None:
        self.add_line((point for pair in pairs for point in (*pair, _GAP)), line)

    def _add_labels(self, labels: Iterable[tuple[float, float, str]], anchor: str) -> None:
        texts = "".join(write_element("text", write_words(label), x=x, y=y) for x, y, label in labels)
        self._add("g", texts, fill=INK, text_anchor=anchor)

    def _add(self, name: str, content: str = "", **attributes: str | float) -> None:
        self._parts.append(write_element(name, content, **attributes))


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle of a sheet that is drawn on in values of its axes."""

    sheet: Sheet
    left: float
    top: float
    width: float
    height: float
    x: Scale
    y: Scale

    def place_x(self, value: float) -> float:
        """The pixels from the left of the sheet."""
        return self.left + self.width * self.x.get_share(value)

    def place_y(self, value: float) -> float:
        """The pixels from the top of the sheet."""
        return self.top + self.height * (1 - self.y.get_share(value))

    def draw_line(self, xs: Iterable[float], ys: Iterable[float], line: Line) -> None:
        """A line through values; one that is not finite leaves a gap."""
        self.sheet.add_line(zip(map(self.place_x, xs), map(self.place_y, ys), strict=True), line)

    def draw_markers(self, xs: Iterable[float], ys: Iterable[float], marker: Marker) -> None:
        """A marker at each pair of finite values."""
        self.sheet.add_markers(zip(map(self.place_x, xs), map(self.place_y, ys), strict=True), marker)

    def draw_across(self, value: float, line: Line) -> None:
        """A line over the whole width, at a value within the vertical axis."""
        if 0 <= self.y.get_share(value) <= 1:
            y = self.place_y(value)
            self.sheet.add_line([(self.left, y), (self.left + self.width, y)], line)

    def draw_down(self, value: float, line: Line) -> None:
        """A line over the whole height, at a value within the horizontal axis."""
        if 0 <= self.x.get_share(value) <= 1:
            x = self.place_x(value)
            self.sheet.add_line([(x, self.top), (x, self.top + self.height)], line)

    def shade_between(self, low: float, high: float) -> None:
        """A grey band over the whole height, as far as it is within the horizontal axis."""
        left, right = (self.place_x(min(max(value, self.x.low), self.x.high)) for value in (low, high))
        if right > left:
            self.sheet.add_box(left, self.top, right - left, self.height, fill=GRID)


def _write_marker(x: float, y: float, marker: Marker) -> str:
    half = marker.size / 2
    if marker.shape == "circle":
        return write_element("circle", cx=x, cy=y, r=half)
    path = write_path((x + half * across, y + half * down) for across, down in _SHAPES[marker.shape])
    return write_element("path", d=path if marker.shape == "cross" else f"{path}z")
