"""A figure as a reader sees it: texts with places, paths as points, markers; and curves and campaigns to draw."""

import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
STEP = re.compile(r"([MlLz])|(-?\d*\.?\d+)")


@dataclass(frozen=True)
class Path:
    points: list[tuple[float, float]]
    attributes: dict[str, str]


@dataclass(frozen=True)
class Word:
    x: float
    y: float
    text: str
    size: float
    attributes: dict[str, str]


class Figure:
    """The parsed SVG; positions are pixels from the left and from the top."""

    def __init__(self, svg: str) -> None:
        self.root = ET.fromstring(svg)
        self.title = self.root.findtext(f"{SVG}title") or ""
        self.words = [
            Word(
                float(e.get("x", 0)),
                float(e.get("y", 0)),
                "".join(e.itertext()),
                float(e.get("font-size") or self.root.get("font-size")),
                dict(e.attrib),
            )
            for e in self.root.iter(f"{SVG}text")
        ]
        self.paths = [
            Path(decoded(e.attrib["d"]), dict(e.attrib))
            for e in self.root.iter(f"{SVG}path")
            if "id" not in e.attrib and "C" not in e.attrib["d"]
        ]
        self.markers = [
            (float(e.get("x", 0)), float(e.get("y", 0)), e.get("fill", "none"))
            for e in self.root.iter(f"{SVG}use")
        ]

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]

    def word(self, text: str) -> Word:
        found = [word for word in self.words if word.text == text]
        assert found, f"{text!r} is not among {self.texts}"
        return found[0]

    def marked(self, color: str) -> list[tuple[float, float]]:
        return [(x, y) for x, y, fill in self.markers if fill == color]

    def lines(self, **wanted: str) -> list[Path]:
        """Paths with these attributes; `stroke_dasharray=""` for solid ones."""
        return [
            path
            for path in self.paths
            if all(path.attributes.get(name.replace("_", "-"), "") == value for name, value in wanted.items())
        ]


def decoded(commands: str) -> list[tuple[float, float]]:
    """The points of a path of absolute moves and relative steps."""
    points: list[tuple[float, float]] = []
    numbers: list[float] = []
    relative = False
    for command, number in STEP.findall(commands):
        if command:
            relative = command == "l"
            continue
        numbers.append(float(number))
        if len(numbers) == 2:
            x, y = numbers
            if relative:
                x, y = points[-1][0] + x, points[-1][1] + y
            points.append((x, y))
            numbers = []
            relative = True
    return points
