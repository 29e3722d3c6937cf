"""A workbook (xlsx) of plain tables, for spreadsheet programs. Texts are texts there: none can run as a formula."""

import io
import math
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any, Final
from xml.sax.saxutils import escape

XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # the same tables give the same bytes
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS: Final = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES: Final = "http://schemas.openxmlformats.org/package/2006/content-types"
_KIND: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # no XML has them
_TEXT_MAX: Final = 32_767  # characters of a cell


def write_workbook(sheets: Mapping[str, Iterable[Iterable[Any]]]) -> bytes:
    """One sheet per name, of lines of cells: numbers, booleans, texts, or None for an empty cell. It is not compressed."""
    names = list(sheets)
    numbers = range(1, len(names) + 1)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>'
        + "".join(
            f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{_KIND}.worksheet+xml"/>'
            for n in numbers
        )
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        + "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>'
            for n, name in zip(numbers, names, strict=True)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">'
        + "".join(
            f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in numbers
        )
        + "</Relationships>",
        **{
            f"xl/worksheets/sheet{n}.xml": _write_sheet(sheets[name])
            for n, name in zip(numbers, names, strict=True)
        },
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path, content in parts.items():
            archive.writestr(zipfile.ZipInfo(path, _DATE), _HEAD + content)
    return buffer.getvalue()


def _write_sheet(lines: Iterable[Iterable[Any]]) -> str:
    rows = "".join(f"<row>{''.join(map(_write_cell, line))}</row>" for line in lines)
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'


def _write_cell(value: Any) -> str:
    if value is None or value == "":
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float) and math.isfinite(value):
        return f"<c><v>{value!r}</v></c>"
    text = escape(_CONTROL.sub("\ufffd", str(value))[:_TEXT_MAX])
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
