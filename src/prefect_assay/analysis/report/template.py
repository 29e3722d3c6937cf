"""The page's template, compiled at import: a fork server imports it once for all runs. Needs the extra `report`."""

import re
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from prefect_assay.analysis.report import words
from prefect_assay.analysis.results.formats import (
    CONSTANT,
    format_molar_estimate,
    format_rate_estimate,
)
from prefect_assay.service.models.billing import usd


def _clean_value(value: Any) -> Any:
    """Text of others without control characters; safe markup passes as it is."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else words.clean_text(value)


def _typeset_constants(text: str) -> Markup:
    """Constants in a text of this package, such as K_D, as a letter with its index."""
    return Markup(CONSTANT.sub(r"<i>\1</i><sub>\2</sub>", str(escape(words.clean_text(text)))))  # noqa: S704 - escaped first


def _make_slug(title: str) -> str:
    """A title as the name of a class: `95-interval`."""
    return "-".join(re.findall("[a-z0-9]+", title.lower()))


_ENVIRONMENT: Final = Environment(
    loader=PackageLoader("prefect_assay.analysis.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_clean_value,
)
_ENVIRONMENT.filters |= {
    "day": words.format_day,
    "melting": words.format_melting,
    "usd": usd,
    "estimate": format_molar_estimate,
    "rate": format_rate_estimate,
    "slug": _make_slug,
    "typeset": _typeset_constants,
}
REPORT: Final = _ENVIRONMENT.get_template("report.html")
