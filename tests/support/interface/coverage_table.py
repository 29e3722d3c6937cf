"""Makes docs/service.md: what of the service's interface is built, where, and what shows it.

Run `python tests/support/interface/coverage_table.py` to write the page again. A test compares the committed page with the
code, and fails for any part of the interface without client, lab and test.
"""

import importlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "service.md"
if str(ROOT / "tests") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests"))

from prefect_assay.lab.api import (  # noqa: E402
    ROUTES,
    Route,
    refusals,
)
from prefect_assay.service.client.needs import NEEDS  # noqa: E402
from support.contract import table  # noqa: E402
from support.interface.calls import CALLS, Call  # noqa: E402
from support.interface.client import error_of, method_of, reader_of, sent  # noqa: E402
from support.interface.more import MORE, Item  # noqa: E402
from support.rules.register import RULES  # noqa: E402
from support.rules.tests import RuleTests  # noqa: E402

HOLE = "**missing**"
_NOT_LABS_OWN = {"GET /openapi.json"}  # answered by the web layer: it describes the routes
_ROUTES = {f"{route.method} {route.path}": route for route in ROUTES}
# The pay path's answers of these statuses are read, and no errors.
_VERDICTS = {"402", "409"}
_RULES_OF = {
    "GET /experiments": ("4.1", "7.400.parameter", "7.400.type_filter", "8.limit", "8.offset", "8.sort"),
    "POST /experiments": ("2.2", "2.3", "4.2.create", "8.replicates", "8.binning", "8.secret"),
    "POST /experiments/cost-estimate": ("4.2.estimate",),
    "PATCH /experiments/{experiment_id}": ("4.2.patch",),
    "GET /experiments/{experiment_id}/invoice": ("4.2.invoice", "7.400.invoice"),
    "GET /experiments/{experiment_id}/quote": ("4.2.quote.later",),
    "POST /experiments/{experiment_id}/submit": ("4.2.submit",),
    "POST /experiments/{experiment_id}/quote/confirm": ("4.2.quote", "shapes.quote.body"),
    "POST /quotes/{quote_id}/confirm": ("4.2.quote", "shapes.quote.body"),
    "POST /quotes/{quote_id}/reject": ("shapes.quote.reject", "shapes.quote.reason"),
    "POST /sequences": ("4.3",),
    "POST /tokens/attenuate": ("4.6.attenuate",),
    "POST /partners/mint-token": ("4.6.mint", "8.expiry.minted"),
    "POST /invoices/{invoice_id}/pay": ("7.402", "4.2.create.pinned"),
}
_HEAD = """# The service: what of it is built

What the client and the lab hold of the service's interface, call by call, and the tests of each. A part without client, lab or
test fails a test. Made from the code by `make service-page`. The interface as data is `calls.py` and `more.py` in `tests/support/interface/`; the rules are in
`tests/support/rules/`. Tests are named below `tests/`. On this page and all others, `contract 4.2` is a section of the
service's own description, which is not part of this repository.

- **walk**: `rules/test_rules_walk.py` makes every call over HTTP against a lab in a process of its own, once in neutral
  words and once in those of a deployment. Each parameter and field must be accepted, each field be in the answer, and each
  status occur. It records what the client sends and reads.
- **free**: any JSON is allowed, and comes back unchanged.
- **kept**: the client's model keeps fields that it does not declare.
- Every call may also answer 401, 403, 429 and 500; those are shown for all calls at once (rules 7.401, 7.403, 7.429, 7.500).
"""


_VARIANTS_HEAD = """## Any service that keeps the contract

`tests/contract` runs a deployed run's steps against a service that has the contract's calls and nothing more, without a `Date`.
What the contract does not show, it answers in every form of `tests/support/contract/forms.py`. In no case is anything ordered,
accepted or paid twice. The local lab below is one such service. What it [chooses](lab.md) where the contract is open is no promise
of the service. Its choices:

- The lab has no maximum length of a sequence or a name, and none of a request; the contract shows none (8).
- The invoice of a hosted order is a `draft` until the review is over, and `open` from `waiting_for_materials` on. One of a machine
  rail is `open` at once.
- Experiments are filtered and sorted by `id`, `code`, `name`, `status`, `state`, `results_status`, `experiment_type`, `created_at` and
  `experiment_spec`. The links, `provider_quote_url` among them, are made when they are shown: a filter on one is a 400.
- Rules and fields under `shapes` are from published material about the interface, and no section of the contract.
"""


@cache
def text() -> str:
    """The whole page."""
    parts = [_HEAD, _needs(), _variants(), _calls(), _fields(), _more(), _rules()]
    return "\n".join(parts).rstrip() + "\n"


def _needs() -> str:
    rows = [
        f"| `{call.operation}` | {call.need} | {call.routes} | {call.fields} | {call.without} |"
        for call in NEEDS
    ]
    head = (
        "## What a campaign needs",
        "",
        "Only calls of the contract are needed. Without any other call a campaign completes, as the last column says. Calls that are",
        "not listed are not used by a campaign. `init`, `check` and `drift` follow this table (`service/client/needs.py`).",
        "",
        "| call | | routes and rails | fields that decide | without it |",
        "|---|---|---|---|---|",
    )
    return "\n".join((*head, *rows, ""))


def _variants() -> str:
    return f"{_VARIANTS_HEAD}\n{table.page()}\n"


def holes() -> list[str]:
    """Rows with something missing."""
    return [line for line in text().splitlines() if HOLE in line]


def _table(*titles: str, rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _code(name: str | None) -> str:
    return f"`{name}`" if name else HOLE


def _calls() -> str:
    rows = [
        (
            _code(call.id),
            call.section,
            _code((method := method_of(call.id)) and f"client.{method}"),
            _handler(call),
            f"walk{_rules_of(call)}",
        )
        for call in CALLS
    ]
    return "## Calls\n\n" + _table("call", "contract", "client", "lab", "test", rows=rows)


def _handler(call: Call) -> str:
    if call.id in _NOT_LABS_OWN:
        return "`lab.api.rendered`"
    route = _ROUTES.get(call.id)
    return _code(
        f"{route.handler.__module__.removeprefix('prefect_assay.')}.{route.handler.__name__}"
        if route
        else None
    )


def _rules_of(call: Call) -> str:
    found = [
        rule.id for rule in RULES if any(rule.id.startswith(prefix) for prefix in _RULES_OF.get(call.id, ()))
    ]
    return "".join(f", {rule}" for rule in found)


def _fields() -> str:
    parts = ["## Parameters, fields and refusals\n"]
    for call in CALLS:
        rows = [*_queries(call), *_bodies(call), *_answers(call), *_refusals(call)]
        if rows:
            parts.append(f"### {call.id}\n\n" + _table("part", "name", "client", "lab", "test", rows=rows))
    return "\n".join(parts)


def _queries(call: Call) -> list[tuple[str, ...]]:
    known = sent(call.id).query
    route = _ROUTES.get(call.id)
    return [
        (
            "query",
            _code(name),
            _code(method_of(call.id) if name in known else None),
            _code(_parameter(route, name)),
            "walk",
        )
        for name in call.query.split()
    ]


def _parameter(route: Route | None, name: str) -> str | None:
    if route is None:
        return None
    compared = re.fullmatch(r"(?:equ|geq|gtr|leq|lss)\((\w+)\)", name)
    if compared and route.listing is not None and compared[1] in route.listing.columns:
        return f"LISTING.{compared[1]}"
    return "Route.parameters" if name in route.parameters else None


def _bodies(call: Call) -> list[tuple[str, ...]]:
    known = sent(call.id).body
    route = _ROUTES.get(call.id)
    return [
        (
            "body",
            _code(name),
            _code(method_of(call.id) if name in known else None),
            _code(_in_shape(route and route.body, name)),
            "walk",
        )
        for name in call.sends.split()
    ]


def _answers(call: Call) -> list[tuple[str, ...]]:
    route = _ROUTES.get(call.id)
    shapes = [shape for shape in (route.answers.values() if route else ()) if shape]
    return [
        (
            "answer",
            _code(name),
            _code(reader_of(call.id, name)),
            _code(
                next(
                    (place for shape in shapes if (place := _in_shape(shape, name.removeprefix("[].")))), None
                )
            ),
            "walk",
        )
        for name in call.gets.split()
    ]


def _refusals(call: Call) -> list[tuple[str, ...]]:
    route = _ROUTES.get(call.id)
    described = {*refusals(route), *route.answers} if route else set()
    rows = []
    for status in call.refuses.split():
        verdict = "PayAnswer" if call.path.endswith("/pay") and status in _VERDICTS else None
        client = error_of(call.id, int(status)) or verdict
        rows.append(
            ("refusal", status, _code(client), "described" if int(status) in described else HOLE, "walk")
        )
    return rows


def _in_shape(shape: Any, name: str) -> str | None:
    """Where a strict model of the lab has a field; the free object that holds it, or None."""
    return _resolved(shape, name.split(".")) if shape is not None else None


def _resolved(annotation: Any, names: list[str]) -> str | None:
    for model in _inside(annotation)[0]:
        root = model.model_fields.get("root")
        if root is not None and (found := _resolved(root.annotation, names)):
            return found
        for field, info in model.model_fields.items():
            if names[0] != (info.alias or field):
                continue
            place = f"{model.__name__.partition('[')[0]}.{field}"
            rest = [part for part in names[1:] if part != "*"]
            if not rest:
                return place
            if found := _resolved(info.annotation, rest):
                return found
            if _inside(info.annotation)[1]:
                return f"{place} (free)"
    return None


@cache
def _inside(annotation: Any) -> tuple[tuple[type[BaseModel], ...], bool]:
    """The models anywhere in an annotation, and whether it holds free JSON."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,), False
    if annotation is Any:
        return (), True
    value = getattr(annotation, "__value__", None)
    parts = get_args(annotation) if value is None else (value,)
    models: tuple[type[BaseModel], ...] = ()
    free = False
    for part in parts:
        if isinstance(part, type) or get_args(part) or part is Any or hasattr(part, "__value__"):
            found, is_free = _inside(part)
            models, free = (*models, *found), free or is_free
    return models, free


def _more() -> str:
    rows = [(item.name, item.section, _place(item.client), _place(item.lab), _test(item)) for item in MORE]
    return "## Besides calls\n\n" + _table("what", "contract", "client", "lab", "test", rows=rows)


def _place(place: str) -> str:
    if place == "-":
        return "-"
    module_name, _, attribute = place.partition(":")
    found: Any = importlib.import_module(f"prefect_assay.{module_name}")
    for part in attribute.split("."):
        fields = getattr(found, "model_fields", {}) | getattr(found, "__annotations__", {})
        if not hasattr(found, part) and part not in fields and not _set_in_init(found, part):
            return HOLE
        found = getattr(found, part, None)
    return f"`{module_name}.{attribute}`"


def _set_in_init(owner: Any, name: str) -> bool:
    code = getattr(getattr(owner, "__init__", None), "__code__", None)
    return code is not None and name in code.co_names


def _test(item: Item) -> str:
    file, _, name = item.test.partition("::")
    path = ROOT / "tests" / file
    if not path.is_file() or (name and f"def {name}(" not in path.read_text(encoding="utf-8")):
        return HOLE
    return f"`{item.test}`"


def _rules() -> str:
    found = RuleTests.read()

    def side(rule: str, name: str, why_not: str) -> str:
        tests = ", ".join(f"`{test.removeprefix('test_rules_')}`" for test in found.of(rule, name))
        return tests or (f"not there: {why_not}" if why_not else HOLE)

    rows = [
        (rule.id, rule.says, side(rule.id, "client", rule.client), side(rule.id, "lab", rule.lab))
        for rule in RULES
    ]
    intro = "## Rules\n\nTests are named without `rules/test_rules_`. All of them go over HTTP.\n\n"
    return intro + _table("rule", "content", "refused by the client", "held by the lab", rows=rows)


def main() -> None:
    """Write the page."""
    PAGE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
