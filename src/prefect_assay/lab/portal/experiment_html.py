"""The lab's small web pages: an experiment's progress and results, a quote to accept, an invoice to pay.

Pure functions from records to self-contained HTML: no script, no outside asset, every value escaped. They must
not know storage or HTTP. Field names are the neutral ones; a field that is absent is left out.
"""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from prefect_assay.lab.billing.invoices import PAYABLE
from prefect_assay.lab.portal import charts, frame
from prefect_assay.models.vocabulary import ExperimentStatus, InvoiceStatus, QuoteStatus

Record = dict[str, Any]

CURVES_MAX: Final = 6
REJECT_REASONS: Final = ("price", "scope", "timeline", "budget", "other")
_OPEN_QUOTES: Final = frozenset({QuoteStatus.OPEN, QuoteStatus.PENDING})
_CALL: Final = "_call"
_FINAL: Final = frozenset({ExperimentStatus.DONE, ExperimentStatus.CANCELED})


def experiment_page(experiment: Record, updates: list[Record], results: list[Record]) -> str:
    """One experiment: where it is, what has come out, what happened.

    Args:
        experiment: `code`, `status`, and where known `name`, `experiment_type`, `results_status`, `created_at`.
        updates: `name`, `description`, and `timestamp` or `created_at`.
        results: whole results with `summary`, and `data_package_url` where there is a package.
    """
    status = str(experiment.get("status", ""))
    facts = [frame.words(experiment.get("experiment_type")), frame.day(experiment.get("created_at"))]
    canceled = (
        '<p class="note">This experiment was canceled.</p>' if status == ExperimentStatus.CANCELED else ""
    )
    body = (
        frame.heading(experiment.get("code"), experiment.get("name"), status, facts)
        + f"<section><h2>Progress</h2>{canceled or charts.progress(status)}</section>"
        + "".join(_result(result) for result in results)
        + _history(updates)
    )
    return frame.page(str(experiment.get("code") or "Experiment"), body, refresh=status not in _FINAL)


def quote_page(quote: Record, experiment: Record) -> str:
    """A quote: its lines and total, and, while it is open, the decision (`./accept`, `./reject`).

    Args:
        quote: `quote_number` or `id`, `status`, `line_items`, `total_cents`, and where known `valid_until`.
        experiment: `code`, and where known `name`.
    """
    number = quote.get("quote_number") or quote.get("id")
    until = quote.get("valid_until") or quote.get("expires_at")
    total = quote.get("total_cents", quote.get("amount_total"))
    status = str(quote.get("status", ""))
    decision = ""
    if status in _OPEN_QUOTES:
        options = "".join(
            f'<option value="{reason}">{reason.capitalize()}</option>' for reason in REJECT_REASONS
        )
        decision = (
            '<form method="post" action="./accept"><button>Accept the quote</button></form>'
            f'<form method="post" action="./reject"><select name="reason" aria-label="Reason">{options}</select>'
            '<input name="feedback" placeholder="Feedback (optional)" aria-label="Feedback" maxlength="500">'
            '<button class="quiet">Reject</button></form>'
        )
    body = (
        frame.heading(f"Quote {number}", experiment.get("name"), status, [experiment.get("code")])
        + f'<section>{_lines(quote.get("line_items") or [])}<p class="total">{frame.money(total)}</p>'
        + f'<p class="note">Without VAT.{" Valid until " + frame.time(until) + "." if until else ""}</p>{decision}</section>'
    )
    return frame.page(f"Quote {number}", body)


def invoice_page(invoice: Record, experiment: Record) -> str:
    """An invoice, and, while it is unpaid, the button that pays it (`./pay`).

    Args:
        invoice: `id`, `status`, `amount_cents`, and where known `paid_at`, `settlement_reference`.
        experiment: `code`, and where known `name`.
    """
    status = str(invoice.get("status", ""))
    action = ""
    if status in PAYABLE:
        action = '<form method="post" action="./pay"><button>Pay this invoice</button></form>'
    elif status == InvoiceStatus.PAID:
        when = f" on {frame.time(invoice['paid_at'])}" if invoice.get("paid_at") else ""
        action = f'<p class="note">Paid{when}. Thank you.</p>'
    reference = invoice.get("settlement_reference")
    body = (
        frame.heading("Invoice", experiment.get("name"), status, [experiment.get("code")])
        + f'<section><p class="total">{frame.money(invoice.get("amount_cents"))}</p>'
        + f'<p class="note">{frame.text(invoice.get("provider_invoice_id") or invoice.get("id"))}, without VAT.</p>'
        + (f'<p class="note">Settlement {frame.text(reference)}</p>' if reference else "")
        + f"{action}</section>"
    )
    return frame.page(f"Invoice {experiment.get('code') or ''}".strip(), body)


def _result(result: Record) -> str:
    entries = result.get("summary") or []
    picture = charts.kd_plot(entries) or charts.bar_plot(*_bars(entries))
    fitted = [charts.binding_curves(entry) for entry in charts.fitted(entries)[:CURVES_MAX]]
    plots = (
        f'<h2>1:1 curves of the fitted constants</h2><div class="plots">{"".join(fitted)}</div>'
        '<p class="note">Share of the saturation response at 1000, 316.2, 100 and 31.6 nM, first fitted '
        "replicate. The raw curves are in the data package.</p>"
        if fitted
        else ""
    )
    return (
        f"<section><h2>{frame.text(result.get('title') or 'Result')}</h2>{picture}{_table(entries)}{plots}"
        f"{_download(result.get('data_package_url'))}</section>"
    )


def _bars(entries: Sequence[Record]) -> tuple[list[tuple[str, float]], str]:
    """The one number of the assays that have no K_D."""
    for field, unit in (
        ("tm", "°C"),
        ("intensity_mean", "RFU"),
        ("yield_mean", "mg/L"),
        ("kcat_mean", "1/s"),
    ):
        rows = [
            (charts.design(entry), float(entry[field])) for entry in entries if entry.get(field) is not None
        ]
        if rows:
            return rows, unit
    return [], ""


def _table(entries: Sequence[Record]) -> str:
    entries = [{**entry, _CALL: _call(entry)} for entry in entries]
    columns = [
        (head, field, show)
        for head, field, show in (
            ("Call", _CALL, frame.chip),
            ("K<sub>D</sub>", "kd_mean", charts.molar),
            ("k<sub>on</sub> 1/(M s)", "kon_mean", _scientific),
            ("k<sub>off</sub> 1/s", "koff_mean", _scientific),
            ("Tm °C", "tm", _plain),
            ("Bin", "bin", frame.text),
            ("Active", "active", frame.text),
            ("Expression", "expression", frame.text),
            ("Source", "data_source", frame.text),
        )
        if any(entry.get(field) is not None for entry in entries)
    ]
    head = "".join(f"<th>{title}</th>" for title, _, _ in columns)
    rows = "".join(
        f'<tr><td class="wide">{frame.text(charts.design(entry))}{" (control)" if entry.get("positive_control") else ""}</td>'
        + "".join(
            f"<td>{show(entry[field]) if entry.get(field) is not None else '&ndash;'}</td>"
            for _, field, show in columns
        )
        + "</tr>"
        for entry in entries
    )
    return f"<table><tr><th>Design</th>{head}</tr>{rows}</table>"


def _call(entry: Record) -> Any:
    """In progress is neither a call nor the lack of one."""
    states = (entry.get("binding"), entry.get("state"))
    return "in_progress" if "in_progress" in states else entry.get("binding_strength")


def _download(url: Any) -> str:
    # A link may lead to a web address or a path of this server, and never run a script.
    if not isinstance(url, str) or not url.startswith(("http://", "https://", "/")):
        return ""
    return f'<p><a href="{escape(url)}">Data package (zip)</a></p>'


def _history(updates: Sequence[Record]) -> str:
    if not updates:
        return ""
    items = "".join(
        f"<li><strong>{frame.text(update.get('name'))}</strong> "
        f"<time>{frame.time(update.get('timestamp') or update.get('created_at'))}</time>"
        f"<br>{frame.text(update.get('description'))}</li>"
        for update in updates
    )
    return f"<section><h2>Updates</h2><ol>{items}</ol></section>"


def _lines(items: Sequence[Record]) -> str:
    if not items:
        return ""
    rows = "".join(
        f'<tr><td class="wide">{frame.text(item.get("description"))}</td><td class="num">{frame.text(item.get("quantity"))}</td>'
        f'<td class="num">{frame.money(item.get("unit_price_cents"))}</td><td class="num">{frame.money(item.get("total_cents"))}</td></tr>'
        for item in items
    )
    return (
        '<table><tr><th>Item</th><th class="num">Quantity</th><th class="num">Unit price</th>'
        f'<th class="num">Total</th></tr>{rows}</table>'
    )


def _plain(value: float) -> str:
    return f"{value:.2f}"


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}&times;10<sup>{int(exponent)}</sup>"
