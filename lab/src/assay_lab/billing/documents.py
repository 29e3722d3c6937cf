"""Quotes and invoices as PDF files, minimal PDF 1.4 (service shapes, Quotes and invoices).

An invoice's call redirects to a file under `/portal`, which the key in its address opens without the token.
"""

from collections.abc import Sequence
from typing import Any, Final

from assay_lab.billing import invoices, quotes
from assay_lab.kernel.store import Row, decode_row
from assay_lab.requests.core import Answer, Call, Lab, experiment_of

MEDIA_TYPE: Final = "application/pdf"
_PAGE: Final = (595, 842)  # A4 in points
_LEFT, _TOP, _LEADING = 56, 780, 16
# A monospaced font keeps columns of figures in line.
_FONT, _SIZE = "Courier", 10
WIDTH: Final = 80


def quote_pdf(call: Call) -> Answer:
    """GET /experiments/{id}/quote/pdf: 404 until the quote exists."""
    with call.lab.store.transaction() as db:
        experiment = experiment_of(db, call)
        quote = decode_row(quotes.require_current(db, experiment), "line_items")
    about = [
        ("Quote", quote["quote_number"]),
        ("Organization", call.who.org_name),
        ("Experiment", f"{experiment['code']}  {experiment['name'] or ''}"),
        ("Status", quotes.acceptance_word(quote["status"])),
        ("Issued", quote["created_at"][:10]),
        ("Valid until", quote["valid_until"][:10]),
    ]
    content = make_pdf(f"Quote {quote['quote_number']}", [*_format_pairs(about), "", *_format_items(quote)])
    disposition = {"Content-Disposition": f'attachment; filename="{quote["quote_number"]}.pdf"'}
    return Answer(content, 200, disposition, MEDIA_TYPE)


def invoice_pdf(call: Call) -> Answer:
    """GET /invoices/{invoice_id}/pdf: redirects to the file, which is fetched without the token."""
    with call.lab.store.transaction() as db:
        invoice = invoices.find_invoice(db, call)
    return Answer(None, 307, {"Location": f"{invoices.link_invoice(call.lab, invoice)}pdf"})


def hosted_invoice(lab: Lab, key: str) -> bytes:
    """The invoice that the portal key opens, as a PDF; 404 for an unknown key."""
    with lab.store.transaction() as db:
        invoice = db.opened("invoices", key)
        quote = decode_row(db.get("quotes", invoice["quote_id"]) or {}, "line_items")
        experiment = db.get("experiments", invoice["experiment_id"]) or {}
        organization = db.get("organizations", invoice["org_id"]) or {}
    about = [
        ("Invoice", invoice["provider_invoice_id"]),
        ("Organization", organization["name"]),
        ("Experiment", f"{experiment['code']}  {experiment['name'] or ''}"),
        ("Quote", quote["quote_number"]),
        ("Purchase order", quote["purchase_order_number"] or "-"),
        ("Status", invoice["status"]),
        ("Issued", invoice["created_at"][:10]),
        ("Paid", (invoice["paid_at"] or "-")[:10]),
    ]
    return make_pdf("Invoice", [*_format_pairs(about), "", *_format_items(quote)])


def _format_pairs(pairs: Sequence[tuple[str, Any]]) -> list[str]:
    return [f"{name:<16}{value}" for name, value in pairs]


def _format_items(quote: Row) -> list[str]:
    currency, lines = quote["currency"].upper(), quote["line_items"]
    rule = "-" * WIDTH
    return [
        _format_row("Description", "Quantity", f"Total {currency}"),
        rule,
        *(
            _format_row(line["description"], str(line["quantity"]), _format_money(line["total_cents"]))
            for line in lines
        ),
        rule,
        _format_row("Total, excluding VAT", "", _format_money(quote["total_cents"])),
        "",
        "This document comes from a local lab and is not binding.",
    ]


def _format_row(description: str, quantity: str, total: str) -> str:
    return f"{description[:49]:<50}{quantity:>10}{total:>20}"


def _format_money(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}"


def make_pdf(title: str, lines: Sequence[str]) -> bytes:
    """A PDF of one page: a heading and lines, cut at WIDTH characters; those outside Windows-1252 become `?`."""
    content = _make_content(title, lines)
    return _make_file(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{_FONT} /Encoding /WinAnsiEncoding >>".encode(),
            b"<< /Title (" + _escape_text(title) + b") >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_PAGE[0]} {_PAGE[1]}] /Contents 6 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            f"<< /Length {len(content)} >>\nstream\n".encode() + content + b"\nendstream",
        ]
    )


def _make_content(heading: str, lines: Sequence[str]) -> bytes:
    shown = [
        f"BT /F1 16 Tf {_LEFT} {_TOP + 24} Td (".encode() + _escape_text(heading) + b") Tj ET",
        f"BT /F1 {_SIZE} Tf {_LEADING} TL {_LEFT} {_TOP} Td".encode(),
    ]
    shown += [b"(" + _escape_text(line[:WIDTH]) + b") Tj T*" for line in lines]
    return b"\n".join([*shown, b"ET"])


def _escape_text(text: str) -> bytes:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    raw = printable.encode("cp1252", "replace")
    return raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _make_file(objects: Sequence[bytes]) -> bytes:
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
