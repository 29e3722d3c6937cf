"""A figure as a reader sees it: texts with places, paths as points, markers; and curves and campaigns to draw."""

import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
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
        self.words = []
        self.paths = []
        self.markers = []
        for part in self.root:
            name = part.tag.removeprefix(SVG)
            if name == "text":
                self.words.append(self._word(part, {}))
            elif name == "path":
                self.paths.append(Path(decoded(part.attrib["d"]), dict(part.attrib)))
            elif name == "rect":
                self.paths.append(Path(corners(part), dict(part.attrib)))
            elif name == "g":
                for child in part:
                    if child.tag == f"{SVG}text":
                        self.words.append(self._word(child, part.attrib))
                    else:
                        self.markers.append((*middle(child), part.get("fill", "none")))

    def _word(self, element: ET.Element, inherited: dict[str, str]) -> Word:
        return Word(
            float(element.get("x", 0)),
            float(element.get("y", 0)),
            "".join(element.itertext()),
            float(element.get("font-size") or self.root.get("font-size")),
            {**inherited, **element.attrib},
        )

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]

    def word(self, text: str) -> Word:
        matches = [word for word in self.words if word.text == text]
        assert matches, f"{text!r} is not among {self.texts}"
        return matches[0]

    def marked(self, color: str) -> list[tuple[float, float]]:
        return [(x, y) for x, y, fill in self.markers if fill == color]

    def lines(self, **attributes: str) -> list[Path]:
        """Paths with these attributes; `stroke_dasharray=""` for solid ones."""
        return [
            path
            for path in self.paths
            if all(
                path.attributes.get(name.replace("_", "-"), "") == value for name, value in attributes.items()
            )
        ]


def corners(rect: ET.Element) -> list[tuple[float, float]]:
    """From the lower left one."""
    x, y, width, height = (float(rect.get(name, 0)) for name in ("x", "y", "width", "height"))
    return [(x, y + height), (x + width, y + height), (x + width, y), (x, y)]


def middle(marker: ET.Element) -> tuple[float, float]:
    """The place of a marker: a circle, or a path whose corners lie evenly around it."""
    if "cx" in marker.attrib:
        return float(marker.get("cx")), float(marker.get("cy"))
    xs, ys = zip(*decoded(marker.attrib["d"]), strict=True)
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2


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
