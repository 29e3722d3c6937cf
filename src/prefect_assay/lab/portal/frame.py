"""The frame of the lab's web pages: style, policy, and the small pieces that all pages are made of.

No script, no outside asset, every value escaped. Knows neither storage nor HTTP beyond the headers of a page.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

REFRESH_S: Final = 5
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.:\[\]-]*")

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
.w760{max-width:760px}.w370{max-width:370px}nav{background:var(--card);border-bottom:1px solid var(--line)}nav>div{max-width:860px;
margin:0 auto;padding:10px 20px;display:flex;gap:20px;align-items:center;flex-wrap:wrap}nav a{text-decoration:none;color:var(--soft)}
nav a.here{color:var(--ink);font-weight:600}nav .right{margin-left:auto;color:var(--soft);font-size:13px}nav form{margin:0}
nav button{background:none;color:var(--soft);border:1px solid var(--line);padding:4px 12px;font-weight:500}
td form{margin:0}td button{padding:3px 12px;font-size:13px}label{display:flex;gap:8px;align-items:center;color:var(--soft);
font-size:13px}.fresh{border-color:var(--good)}pre{margin:8px 0 0;padding:12px;background:var(--page);border-radius:8px;white-space:pre-wrap;
overflow-wrap:anywhere;font-size:13px}.gone{color:var(--soft)}
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def page(
    title: str, body: str, *, refresh: bool = False, bar: str = "", form_targets: Iterable[str] = ()
) -> str:
    """A whole page; with `refresh` it loads again every few seconds.

    `bar` is HTML above the page, `form_targets` are further addresses to which a form may lead in the end.
    """
    again = f'<meta http-equiv="refresh" content="{REFRESH_S}">' if refresh else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(form_targets)}">'
        f"{again}<title>{escape(title)}</title><style>{STYLE}</style></head><body>{bar}<main>{body}"
        "<footer>Local lab: nothing on this page is ordered, shipped or charged.</footer></main></body></html>"
    )


def headers(form_targets: Iterable[str] = ()) -> dict[str, str]:
    """HTTP headers of every page."""
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"{_policy(form_targets)}; frame-ancestors 'none'",
        # The key in an address opens the page: it must not reach another site.
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }


def _policy(form_targets: Iterable[str]) -> str:
    """Nothing but the one style sheet may load or run, even if an escape were forgotten."""
    targets = " ".join(["'self'", *(origin for target in form_targets if (origin := _origin(target)))])
    return f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {targets}; base-uri 'none'"


def _origin(url: str) -> str:
    """`https://host:1` of an address, or only its scheme where it has no host; nothing of what looks odd."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}:" if re.fullmatch(r"[a-z][a-z0-9+.-]*", parts.scheme) else ""
    return origin if _ORIGIN.fullmatch(origin) else ""


def heading(title: Any, name: Any, status: str, facts: Iterable[Any]) -> str:
    """The head of a page about one thing."""
    known = " · ".join(text(fact) for fact in (name, *facts) if fact)
    return f'<h1>{text(title)} {chip(status)}</h1><p class="sub">{known}</p>'


def chip(status: Any) -> str:
    """A status as a coloured label."""
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
    return f'<span class="chip {tone}">{text(words(value))}</span>' if value else ""


def words(value: Any) -> str:
    """`in_queue` as `in queue`."""
    return str(value).replace("_", " ") if value else ""


def text(value: Any) -> str:
    """Any value as text of a page."""
    return "" if value is None else escape(str(value))


def time(value: Any) -> str:
    """`2026-03-01T12:00:00Z` as `2026-03-01 12:00 UTC`."""
    written = value.isoformat() if hasattr(value, "isoformat") else str(value or "")
    return escape(f"{written[:10]} {written[11:16]} UTC" if "T" in written else written)


def day(value: Any) -> str:
    """Only the date."""
    return time(value)[:10]


def money(cents: Any) -> str:
    """Cents as dollars."""
    return f"${int(cents) / 100:,.2f}" if cents is not None else "&ndash;"
