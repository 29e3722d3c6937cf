"""The SVG of matplotlib, made small, themed and safe: what every figure passes through at the end.

Coordinates are rounded to a tenth of a pixel, and groups, names and metadata of the drawing library are dropped. Each
colour of the palette is written as an attribute, for paper and for drawing programs, and gets a class that a dark colour
scheme overrides. The paper is part of the drawing, so paper and ink always change together: a figure is legible on a page
of either scheme, also where the page and the system disagree. Knows no data.
"""

import base64
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree import ElementTree as ET

INK: Final = "#1b1f24"
MUTED: Final = "#59616b"
GRID: Final = "#d5d9de"
PAPER: Final = "#ffffff"
# Okabe and Ito, https://jfly.uni-koeln.de/color/; their yellow is too light for white paper.
BLUE: Final = "#0072b2"
VERMILLION: Final = "#d55e00"
GREEN: Final = "#009e73"
PURPLE: Final = "#cc79a7"
ORANGE: Final = "#e69f00"
SKY: Final = "#56b4e9"

_DARK: Final = {INK: "#eceff2", MUTED: "#a9b1ba", GRID: "#434a52", PAPER: "#171a1e", BLUE: SKY, SKY: BLUE}
_CLASSES: Final = {color: f"c{number}" for number, color in enumerate(_DARK)}
_PROPERTIES: Final = {"fill": "f", "stroke": "s"}
_STYLE: Final = (
    "@media screen and (prefers-color-scheme:dark){"
    + "".join(
        f".assay-plot .{letter}{_CLASSES[color]}{{{name}:{dark}}}"
        for color, dark in _DARK.items()
        for name, letter in _PROPERTIES.items()
    )
    + "}"
)
_FONTS: Final = "Helvetica,Arial,'Liberation Sans','Noto Sans',sans-serif"
_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_DROPPED: Final = frozenset({"font-family", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit"})
_DEFAULTS: Final = frozenset(  # of SVG, or of the whole drawing
    {("fill", "none"), ("stroke-dashoffset", "0"), ("text-anchor", "start"), ("stroke-width", "1")}
)
KD: Final = "\ue000"  # a private character, written as the symbol K with the index D
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_NUMBERS: Final = re.compile(r"(?:(?:[a-z]+\()?-?[\d.]+(?:e-?\d+)?(?:px)?\)?[, ]*)+")
_TOKEN: Final = re.compile(r"[A-Za-z]|-?[\d.]+(?:e-?\d+)?")
_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
_NOT_IN_XML: Final = "\ufffe\uffff"
_KEPT: Final = f"{KD}\u200d"  # the second joins the parts of one emoji


def as_markdown_image(svg: str, alt: str) -> str:
    """An inline image for a Markdown artifact: the figure as a data address, `alt` for those who cannot see it."""
    data = base64.b64encode(svg.encode()).decode()
    words = re.sub(r"[\[\]\\`*_<>!|&]", " ", clean(alt))  # a name must not end the image or make a link
    return f"![{' '.join(words.split())}](data:image/svg+xml;base64,{data})"


def clean(text: str) -> str:
    """One line without characters that XML forbids or that change the direction of what follows."""
    return "".join(
        character
        for character in " ".join(text.split())
        if character in _KEPT
        or (unicodedata.category(character) not in _CONTROLS and character not in _NOT_IN_XML)
    )


def themed(raw: str, texts: Mapping[str, str], *, title: str) -> str:
    """The finished figure. `texts` maps the keys drawn in place of texts to the texts themselves."""
    source = ET.fromstring(raw)  # noqa: S314  written by the drawing library, from numbers and keys
    width, height = (f"{float(size):g}" for size in source.attrib["viewBox"].split()[2:])
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "xmlns:xlink": "http://www.w3.org/1999/xlink",
            "class": "assay-plot",
            "role": "img",
            "viewBox": f"0 0 {width} {height}",
            "width": width,
            "height": height,
            "style": "max-width:100%;height:auto",
            "font-family": _FONTS,
            "fill": "none",
            "stroke-linejoin": "round",
        },
    )
    ET.SubElement(root, "title").text = clean(title).replace(KD, "K_D")
    ET.SubElement(root, "style").text = _STYLE
    for child in source:
        if child.tag != f"{_SVG}metadata" and child.find(f"{_SVG}style") is None:
            root.extend(_copies(child, texts))
    return ET.tostring(root, encoding="unicode")


def _copies(source: ET.Element, texts: Mapping[str, str]) -> Iterator[ET.Element]:
    """The element with short attributes, or only its children where it was a group without an effect."""
    tag = source.tag.removeprefix(_SVG)
    children = [copy for child in source for copy in _copies(child, texts)]
    attributes = _attributes(source, tag)
    if tag == "g" and not attributes:
        yield from children
        return
    if tag in {"g", "defs"} and not children:
        return
    if tag == "path" and attributes.keys() == {"d"}:
        return
    copy = ET.Element(tag, attributes)
    copy.extend(children)
    if tag == "text":
        _write_text(copy, texts.get(source.text or "", source.text or ""))
    yield copy


def _attributes(source: ET.Element, tag: str) -> dict[str, str]:
    """The attributes that have an effect, with those of the style beside the others."""
    entries = (entry.partition(":") for entry in source.get("style", "").split(";"))
    found = {name.strip(): value.strip() for name, _, value in entries if value}
    found |= {name: value for name, value in source.attrib.items() if name not in {"style", "id"}}
    if tag in {"path", "clipPath"} and "id" in source.attrib:
        found["id"] = source.attrib["id"]  # made from what it names: two figures on a page agree on it
    if tag == "use":
        found = {name: value for name, value in found.items() if not name.startswith("stroke")}
        found["xlink:href"] = found.pop(_HREF)
    if "d" in found:
        found["d"] = _path(found["d"])
    kept = {
        name: _short(value)
        for name, value in found.items()
        if name not in _DROPPED and (name, value) not in _DEFAULTS
    }
    if kept.get("transform", "").startswith("rotate(0 "):
        del kept["transform"]
    classes = [
        letter + _CLASSES[kept[name]] for name, letter in _PROPERTIES.items() if kept.get(name) in _CLASSES
    ]
    return kept | ({"class": " ".join(classes)} if classes else {})


def _short(value: str) -> str:
    return _NUMBER.sub(lambda match: _number(float(match[0])), value) if _NUMBERS.fullmatch(value) else value


def _number(value: float) -> str:
    """At most one decimal, as short as SVG allows: `-0.30` gives `-.3`."""
    text = f"{value:.1f}".removesuffix(".0")
    if text in {"-0", "0"}:
        return "0"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _path(commands: str) -> str:
    """The path with steps from point to point, in tenths of a pixel; a curved one only with shorter numbers."""
    tokens = _TOKEN.findall(commands)
    if not {"C", "Q"}.isdisjoint(tokens):
        return " ".join(
            f"{float(token):.2f}".rstrip("0").rstrip(".") if token[-1].isdigit() else token
            for token in tokens
        )
    written: list[str] = []
    here = (0, 0)
    position = 0
    while position < len(tokens):
        command = tokens[position]
        if command in "zZ":
            written.append("z")
            position += 1
            continue
        there = (round(float(tokens[position + 1]) * 10), round(float(tokens[position + 2]) * 10))
        if command == "M":
            written.append(f"M{_number(there[0] / 10)} {_number(there[1] / 10)}")
        elif there != here:
            step = f"{_number((there[0] - here[0]) / 10)} {_number((there[1] - here[1]) / 10)}"
            written.append(("l" if written[-1][0] == "M" else " ") + step)
        here = there
        position += 3
    return "".join(written).replace(" -", "-")


def _write_text(element: ET.Element, text: str) -> None:
    first, *others = text.split(KD)
    element.text = first
    for after in others:
        ET.SubElement(element, "tspan", {"font-style": "italic"}).text = "K"
        ET.SubElement(element, "tspan", {"dy": "2.5", "font-size": "75%"}).text = "D"
        ET.SubElement(element, "tspan", {"dy": "-2.5"}).text = after
