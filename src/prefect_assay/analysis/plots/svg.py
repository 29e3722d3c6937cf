"""The last step of every figure: makes the SVG of matplotlib small, themed and safe.

Coordinates are rounded to a tenth of a pixel, and groups, names and metadata of the drawing library are dropped. Each
colour of the palette is an attribute, for paper and for drawing programs; a style sheet changes it where the reader
prefers a dark scheme. The background is part of the drawing and changes with the lines, so a figure is legible on a
page of either scheme. Knows no data.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

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
_ROOT: Final = {
    "xmlns": "http://www.w3.org/2000/svg",
    "xmlns:xlink": "http://www.w3.org/1999/xlink",
    "class": "assay-plot",
    "role": "img",
    "style": "max-width:100%;height:auto",
    "font-family": "Helvetica,Arial,'Liberation Sans','Noto Sans',sans-serif",
    "font-size": "10",
    "fill": "none",
    "stroke-linejoin": "round",
}
_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NUMERIC: Final = frozenset(
    {"x", "y", "width", "height", "stroke-width", "stroke-dasharray", "font-size", "transform"}
)
_DROPPED: Final = frozenset({"font-family", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit"})
_DEFAULTS: Final = frozenset(  # of SVG, or of the root
    {
        ("fill", "none"),
        ("stroke-dashoffset", "0"),
        ("text-anchor", "start"),
        ("stroke-width", "1"),
        ("font-size", "10"),
    }
)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# The notation of older matplotlib versions
_FONT: Final = re.compile(r"(?:(?P<weight>\d+) )?(?P<size>[\d.]+)px")
_TOKEN: Final = re.compile(r"[A-Za-z]|-?[\d.]+(?:e-?\d+)?")
_SYMBOLS: Final = {KD: ("K", "D"), TM: ("T", "m")}
_SYMBOL: Final = re.compile(f"([{KD}{TM}])")
_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
_NOT_IN_XML: Final = "\ufffe\uffff"
_PLAIN_IN_ADDRESSES: Final = "/:=;,.-"  # neither Markdown nor an address gives them another meaning there
_KEPT: Final = f"{KD}{TM}\u200d"  # the last joins the parts of one emoji


def as_markdown_image(svg: str, alt: str) -> str:
    """An inline image for a Markdown artifact: the figure as a data address, with `alt` as its description.

    The address is escaped text: in base64 the database, which keeps each artifact twice, could not compress it.
    """
    words = re.sub(r"[\[\]\\`*_<>!|&]", " ", plain(alt))  # a name must not end the image or make a link
    return f"![{' '.join(words.split())}](data:image/svg+xml,{quote(svg, safe=_PLAIN_IN_ADDRESSES)})"


def clean(text: str) -> str:
    """One line, without characters that XML forbids or that change the direction of the text after them."""
    return "".join(
        character
        for character in " ".join(text.split())
        if character in _KEPT
        or (unicodedata.category(character) not in _CONTROLS and character not in _NOT_IN_XML)
    )


def plain(text: str) -> str:
    """The text on one line, with symbols as letters: `K_D`."""
    return _SYMBOL.sub(lambda match: "_".join(_SYMBOLS[match[0]]), clean(text))


def themed(raw: str, texts: Mapping[str, str], *, title: str) -> str:
    """The finished figure. `texts` maps the keys drawn in place of texts to the texts themselves."""
    source = ET.fromstring(raw)  # noqa: S314  written by the drawing library, from numbers and keys
    width, height = (_shorter(size) for size in source.attrib["viewBox"].split()[2:])
    size = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    root = ET.Element("svg", _ROOT | size)
    ET.SubElement(root, "title").text = plain(title)
    style = ET.SubElement(root, "style")
    for child in source:
        if child.tag != f"{_SVG}metadata" and child.find(f"{_SVG}style") is None:
            root.extend(_copies(child, texts))
    style.text = _dark_rules(ET.tostring(root, encoding="unicode"))
    return ET.tostring(root, encoding="unicode")


def _dark_rules(drawing: str) -> str:
    """The dark scheme of the colours in use. A style sheet holds for the whole page: the rules name the class."""
    rules = [
        f'.assay-plot [{name}="{color}"]{{{name}:{dark}}}'
        for color, dark in _DARK.items()
        for name in ("fill", "stroke")
        if f'{name}="{color}"' in drawing
    ]
    return f"@media screen and (prefers-color-scheme:dark){{{''.join(rules)}}}"


def _copies(source: ET.Element, texts: Mapping[str, str]) -> Iterator[ET.Element]:
    """The element with short attributes; only its children where it is a group without an effect."""
    tag = source.tag.removeprefix(_SVG)
    children = [copy for child in source for copy in _copies(child, texts)]
    attributes = _attributes(source, tag)
    if tag == "g" and not attributes:
        yield from children
    elif not (tag in {"g", "defs"} and not children) and attributes.keys() != {"d"}:
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
    if match := _FONT.match(found.pop("font", "")):
        found |= {"font-size": match["size"]} | ({"font-weight": match["weight"]} if match["weight"] else {})
    if tag in {"path", "clipPath"} and "id" in source.attrib:
        found["id"] = source.attrib["id"]  # a digest of what it names: two figures on a page agree on it
    if tag == "use":
        found = {name: value for name, value in found.items() if not name.startswith("stroke")}
        found["xlink:href"] = found.pop(_HREF)
    kept = {}
    for name, value in found.items():
        short = _path(value) if name == "d" else _shorter(value) if name in _NUMERIC else value
        short = short.removesuffix("px")
        if name not in _DROPPED and (name, short) not in _DEFAULTS and not short.startswith("rotate(0 "):
            kept[name] = short
    return kept


def _shorter(value: str) -> str:
    return _NUMBER.sub(lambda match: _number(float(match[0])), value)


def _number(value: float) -> str:
    """At most one decimal, as short as SVG allows: `-0.30` gives `-.3`."""
    text = f"{value:.1f}".removesuffix(".0")
    if text in {"-0", "0"}:
        return "0"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _path(commands: str) -> str:
    """The path as steps from point to point, in tenths of a pixel; a curved one only with shorter numbers."""
    tokens = _TOKEN.findall(commands)
    if not {"C", "Q"}.isdisjoint(tokens):
        return " ".join(token if token.isalpha() else f"{round(float(token), 2):g}" for token in tokens)
    written = []
    here, position, pen_is_new = (0, 0), 0, True
    while position < len(tokens):
        if tokens[position] in "zZ":
            written.append("z")
            position += 1
            continue
        there = (round(float(tokens[position + 1]) * 10), round(float(tokens[position + 2]) * 10))
        step = ((there[0] - here[0]) / 10, (there[1] - here[1]) / 10)
        if tokens[position] == "M":
            written.append(f"M{_number(there[0] / 10)} {_number(there[1] / 10)}")
            pen_is_new = True
        elif there != here:
            written.append(f"{'l' if pen_is_new else ' '}{_number(step[0])} {_number(step[1])}")
            pen_is_new = False
        here = there
        position += 3
    return "".join(written).replace(" -", "-")


def _write_text(element: ET.Element, text: str) -> None:
    first, *others = _SYMBOL.split(text)
    element.text = first
    for symbol, after in zip(others[::2], others[1::2], strict=True):
        letter, index = _SYMBOLS[symbol]
        ET.SubElement(element, "tspan", {"font-style": "italic"}).text = letter
        ET.SubElement(element, "tspan", {"dy": "2.5", "font-size": "75%"}).text = index
        ET.SubElement(element, "tspan", {"dy": "-2.5"}).text = after
