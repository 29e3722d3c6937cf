"""The lab's small web pages: an experiment's progress and results, a quote to accept, an invoice to pay.

Pure functions from records to self-contained HTML: no script, no outside asset, every value escaped. They must
not know storage or HTTP. Field names are the neutral ones; a field that is absent is left out.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from prefect_assay.lab import charts
from prefect_assay.models.vocabulary import ExperimentStatus, InvoiceStatus, QuoteStatus

Record = dict[str, Any]

CURVES_MAX: Final = 6
REFRESH_S: Final = 5
REJECT_REASONS: Final = ("price", "scope", "timeline", "budget", "other")
_OPEN_QUOTES: Final = frozenset({QuoteStatus.OPEN, QuoteStatus.PENDING})
_PAYABLE: Final = frozenset({InvoiceStatus.OPEN, InvoiceStatus.DRAFT})
_CALL: Final = "_call"
_FINAL: Final = frozenset({ExperimentStatus.DONE, ExperimentStatus.CANCELED})

STYLE: Final = """
:root{--ink:#1c2430;--soft:#5d6b7c;--line:#dfe5ec;--card:#fff;--page:#f4f6f9;--accent:#0b7285;--good:#2b8a3e;
--mid:#e08e0b;--bad:#c92a2a;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--soft:#9aa7b6;--line:#313a47;--card:#1b222c;--page:#12171e;
--accent:#3bc9db;--good:#69db7c;--mid:#ffc078;--bad:#ff8787}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:860px;margin:0 auto;padding:28px 20px 48px}h1{font-size:26px;margin:2px 0 0}h2{font-size:16px;
margin:0 0 12px}.sub{color:var(--soft);margin:4px 0 0}section{background:var(--card);border:1px solid var(--line);
border-radius:12px;padding:18px 20px;margin:18px 0;overflow-x:auto}table{border-collapse:collapse;width:100%;
font-variant-numeric:tabular-nums}th{text-align:left;color:var(--soft);font-weight:500;font-size:13px}
th,td{padding:6px 14px 6px 0;border-bottom:1px solid var(--line);white-space:nowrap}tr:last-child td{border:0}table+h2{margin-top:22px}
td.wide{white-space:normal;overflow-wrap:anywhere;min-width:150px}td.num,th.num{text-align:right}
.chip{display:inline-block;border-radius:99px;padding:1px 10px;font-size:13px;border:1px solid var(--line);
background:var(--page)}.chip.strong,.chip.good{color:var(--good);border-color:currentColor}.chip.medium,.chip.wait
{color:var(--mid);border-color:currentColor}.chip.weak,.chip.bad{color:var(--bad);border-color:currentColor}
.total{font-size:30px;font-weight:650;margin:4px 0}button{font:inherit;font-weight:600;border:0;border-radius:8px;
padding:9px 20px;background:var(--accent);color:var(--card);cursor:pointer}button.quiet{background:none;color:var(--bad);
border:1px solid currentColor}select,input{font:inherit;padding:8px 10px;border:1px solid var(--line);border-radius:8px;
background:var(--page);color:inherit}form{display:flex;gap:10px;flex-wrap:wrap;align-items:center;margin:12px 0 0}
ol{list-style:none;margin:0;padding:0}li{padding:7px 0;border-bottom:1px solid var(--line)}li:last-child{border:0}
time,.note{color:var(--soft);font-size:13px}a{color:var(--accent)}svg{display:block;width:100%;height:auto}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:10px}footer{color:var(--soft);
font-size:13px}.rail{stroke:var(--line);stroke-width:3}.rail.on{stroke:var(--accent)}.stage{fill:var(--card);
stroke:var(--line);stroke-width:3}.stage.past{fill:var(--accent);stroke:var(--accent)}.stage.now{stroke:var(--accent)}
text{fill:var(--ink);font:13px system-ui,sans-serif}text.tick{fill:var(--soft);font-size:12px}text.tick.now{fill:
var(--accent);font-weight:650}.grid{stroke:var(--line)}.axis{fill:none;stroke:var(--soft)}.dot{fill-opacity:.75}
.dot.strong{fill:var(--good)}.dot.medium{fill:var(--mid)}.dot.weak,.dot.unknown{fill:var(--bad)}.mean{stroke:var(--ink);
stroke-width:2}.bar{fill:var(--accent)}.curve{fill:none;stroke:var(--accent);stroke-width:1.8}.c1{opacity:.75}
.c2{opacity:.5}.c3{opacity:.32}
"""


def experiment_page(experiment: Record, updates: list[Record], results: list[Record]) -> str:
    """One experiment: where it is, what has come out, what happened.

    Args:
        experiment: `code`, `status`, and where known `name`, `experiment_type`, `results_status`, `created_at`.
        updates: `name`, `description`, and `timestamp` or `created_at`.
        results: whole results with `summary`, and `data_package_url` where there is a package.
    """
    status = str(experiment.get("status", ""))
    facts = [_words(experiment.get("experiment_type")), _day(experiment.get("created_at"))]
    canceled = (
        '<p class="note">This experiment was canceled.</p>' if status == ExperimentStatus.CANCELED else ""
    )
    body = (
        _heading(experiment.get("code"), experiment.get("name"), status, facts)
        + f"<section><h2>Progress</h2>{canceled or charts.progress(status)}</section>"
        + "".join(_result(result) for result in results)
        + _history(updates)
    )
    return _page(str(experiment.get("code") or "Experiment"), body, refresh=status not in _FINAL)


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
        _heading(f"Quote {number}", experiment.get("name"), status, [experiment.get("code")])
        + f'<section>{_lines(quote.get("line_items") or [])}<p class="total">{_money(total)}</p>'
        + f'<p class="note">Without VAT.{" Valid until " + _time(until) + "." if until else ""}</p>{decision}</section>'
    )
    return _page(f"Quote {number}", body)


def invoice_page(invoice: Record, experiment: Record) -> str:
    """An invoice, and, while it is unpaid, the button that pays it (`./pay`).

    Args:
        invoice: `id`, `status`, `amount_cents`, and where known `paid_at`, `settlement_reference`.
        experiment: `code`, and where known `name`.
    """
    status = str(invoice.get("status", ""))
    action = ""
    if status in _PAYABLE:
        action = '<form method="post" action="./pay"><button>Pay this invoice</button></form>'
    elif status == InvoiceStatus.PAID:
        when = f" on {_time(invoice['paid_at'])}" if invoice.get("paid_at") else ""
        action = f'<p class="note">Paid{when}. Thank you.</p>'
    reference = invoice.get("settlement_reference")
    body = (
        _heading("Invoice", experiment.get("name"), status, [experiment.get("code")])
        + f'<section><p class="total">{_money(invoice.get("amount_cents"))}</p>'
        + f'<p class="note">{_text(invoice.get("provider_invoice_id") or invoice.get("id"))}, without VAT.</p>'
        + (f'<p class="note">Settlement {_text(reference)}</p>' if reference else "")
        + f"{action}</section>"
    )
    return _page(f"Invoice {experiment.get('code') or ''}".strip(), body)


def _page(title: str, body: str, *, refresh: bool = False) -> str:
    again = f'<meta http-equiv="refresh" content="{REFRESH_S}">' if refresh else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        # Nothing but inline style may load or run, even if an escape were forgotten.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "form-action 'self'; base-uri 'none'\">"
        f"{again}<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{body}"
        "<footer>Local lab: nothing on this page is ordered, shipped or charged.</footer></main></body></html>"
    )


def _heading(title: Any, name: Any, status: str, facts: Iterable[Any]) -> str:
    known = " · ".join(_text(fact) for fact in (name, *facts) if fact)
    return f'<h1>{_text(title)} {_chip(status)}</h1><p class="sub">{known}</p>'


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
        f"<section><h2>{_text(result.get('title') or 'Result')}</h2>{picture}{_table(entries)}{plots}"
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
        rows = [(_design(entry), float(entry[field])) for entry in entries if entry.get(field) is not None]
        if rows:
            return rows, unit
    return [], ""


def _table(entries: Sequence[Record]) -> str:
    entries = [{**entry, _CALL: _call(entry)} for entry in entries]
    columns = [
        (head, field, show)
        for head, field, show in (
            ("Call", _CALL, _chip),
            ("K<sub>D</sub>", "kd_mean", charts.molar),
            ("k<sub>on</sub> 1/(M s)", "kon_mean", _scientific),
            ("k<sub>off</sub> 1/s", "koff_mean", _scientific),
            ("Tm °C", "tm", _plain),
            ("Bin", "bin", _text),
            ("Active", "active", _text),
            ("Expression", "expression", _text),
            ("Source", "data_source", _text),
        )
        if any(entry.get(field) is not None for entry in entries)
    ]
    head = "".join(f"<th>{title}</th>" for title, _, _ in columns)
    rows = "".join(
        f'<tr><td class="wide">{_text(_design(entry))}{" (control)" if entry.get("positive_control") else ""}</td>'
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


def _design(entry: Record) -> str:
    sequence = entry.get("sequence")
    name = entry.get("sequence_name") or (sequence.get("name") if isinstance(sequence, dict) else None)
    return str(name or "unnamed").strip()


def _download(url: Any) -> str:
    # A link may lead to a web address or a path of this server, and never run a script.
    if not isinstance(url, str) or not url.startswith(("http://", "https://", "/")):
        return ""
    return f'<p><a href="{escape(url)}">Data package (zip)</a></p>'


def _history(updates: Sequence[Record]) -> str:
    if not updates:
        return ""
    items = "".join(
        f"<li><strong>{_text(update.get('name'))}</strong> "
        f"<time>{_time(update.get('timestamp') or update.get('created_at'))}</time>"
        f"<br>{_text(update.get('description'))}</li>"
        for update in updates
    )
    return f"<section><h2>Updates</h2><ol>{items}</ol></section>"


def _lines(items: Sequence[Record]) -> str:
    if not items:
        return ""
    rows = "".join(
        f'<tr><td class="wide">{_text(item.get("description"))}</td><td class="num">{_text(item.get("quantity"))}</td>'
        f'<td class="num">{_money(item.get("unit_price_cents"))}</td><td class="num">{_money(item.get("total_cents"))}</td></tr>'
        for item in items
    )
    return (
        '<table><tr><th>Item</th><th class="num">Quantity</th><th class="num">Unit price</th>'
        f'<th class="num">Total</th></tr>{rows}</table>'
    )


def _chip(status: Any) -> str:
    value = str(status)
    tone = (
        "good"
        if value in {"done", "accepted", "paid", "strong"}
        else "bad"
        if value in {"canceled", "rejected", "expired", "void", "uncollectible", "stale", "weak"}
        else "wait"
        if value in {"open", "pending", "draft", "quote_sent", "medium"}
        else ""
    )
    return f'<span class="chip {tone}">{_text(_words(value))}</span>' if value else ""


def _words(value: Any) -> str:
    return str(value).replace("_", " ") if value else ""


def _text(value: Any) -> str:
    return "" if value is None else escape(str(value))


def _time(value: Any) -> str:
    """`2026-03-01T12:00:00Z` as `2026-03-01 12:00 UTC`."""
    if hasattr(value, "isoformat"):
        value = value.isoformat()
    text = str(value or "")
    return escape(f"{text[:10]} {text[11:16]} UTC" if "T" in text else text)


def _day(value: Any) -> str:
    return _time(value)[:10]


def _money(cents: Any) -> str:
    return f"${int(cents) / 100:,.2f}" if cents is not None else "&ndash;"


def _plain(value: float) -> str:
    return f"{value:.2f}"


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}&times;10<sup>{int(exponent)}</sup>"
