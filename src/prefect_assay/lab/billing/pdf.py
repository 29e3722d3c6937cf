"""A small PDF writer: lines of text on A4 pages, in a font that every reader has. Knows no quotes or invoices.

The file is minimal PDF 1.4: header, objects, cross-reference table and trailer.
"""

from collections.abc import Sequence
from typing import Final

PAGE: Final = (595, 842)  # A4 in points
_LEFT, _TOP, _LEADING = 56, 780, 16
_LINES_PER_PAGE: Final = (_TOP - 56) // _LEADING
# A monospaced font keeps columns of figures in line.
_FONT, _SIZE = "Courier", 10
WIDTH: Final = 80


def document(title: str, lines: Sequence[str]) -> bytes:
    """A PDF of a heading, which is also its title, and lines of text, on as many pages as they need.

    Lines are cut at WIDTH characters; characters outside Windows-1252 become `?`.
    """
    pages = [lines[at : at + _LINES_PER_PAGE] for at in range(0, len(lines) or 1, _LINES_PER_PAGE)]
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        f"<< /Type /Font /Subtype /Type1 /BaseFont /{_FONT} /Encoding /WinAnsiEncoding >>".encode(),
        b"<< /Title (" + _escaped(title) + b") >>",
    ]
    for number, page in enumerate(pages):
        content = _content(title if number == 0 else "", page)
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {PAGE[0]} {PAGE[1]}] /Contents {6 + 2 * number} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            f"<< /Length {len(content)} >>\nstream\n".encode() + content + b"\nendstream",
        ]
    return _file(objects)


def _content(heading: str, lines: Sequence[str]) -> bytes:
    shown = [
        f"BT /F1 16 Tf {_LEFT} {_TOP + 24} Td (".encode() + _escaped(heading) + b") Tj ET",
        f"BT /F1 {_SIZE} Tf {_LEADING} TL {_LEFT} {_TOP} Td".encode(),
    ]
    shown += [b"(" + _escaped(line[:WIDTH]) + b") Tj T*" for line in lines]
    return b"\n".join([*shown, b"ET"])


def _escaped(text: str) -> bytes:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    raw = printable.encode("cp1252", "replace")
    return raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _file(objects: Sequence[bytes]) -> bytes:
    # The comment of high bytes marks the file as binary.
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets: list[int] = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for offset in offsets:
        out += f"{offset:010d} 00000 n \n".encode()
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return bytes(out + trailer.encode())
