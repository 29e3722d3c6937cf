"""Makes docs/service.md: what a campaign needs of the service, how it takes what the contract leaves open, and its rules.

Run `python tests/support/interface/service_page.py` to write the page again. A test compares the committed page with the
code, and fails for a rule without a test. The calls themselves are in `src/prefect_assay/service/openapi.yaml`.
"""

import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "service.md"
if str(ROOT / "tests") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests"))

from prefect_assay.service.client.needs import NEEDS  # noqa: E402
from support.contract import table  # noqa: E402
from support.rules.register import RULES  # noqa: E402
from support.rules.tests import RuleTests  # noqa: E402

HOLE = "**missing**"
_HEAD = """# The service

The calls of the service, with their parameters, bodies, answers and refusals, are described in one place:
`src/prefect_assay/service/openapi.yaml`. `tests/service/test_lab_answers.py` plays each of them against the lab. This page is
made from the code by `make service-page`; the rules are in `tests/support/rules/`. On this page and all others, `contract 4.2`
is a section of the service's own description, which is not part of this repository.
"""


_VARIANTS_HEAD = """## Any service that keeps the contract

`tests/contract` runs a deployed run's steps against a service that has the contract's calls and nothing more, without a `Date`.
What the contract does not show, it answers in every form of `tests/support/contract/forms.py`. In no case is anything ordered,
accepted or paid twice. The local lab below is one such service. What it [chooses](../lab/docs/lab.md) where the contract is open is no promise
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
    return f"{_HEAD}\n{_needs()}\n{_variants()}\n{_rules()}".rstrip() + "\n"


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
