"""Variants x routes: how a campaign ends with each form of each part, and with lost answers.

`python tests/support/contract/table.py` runs all of them, or those that are named, and writes `outcomes.json`; the tests run
each variant again and compare.
"""

import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from math import isclose
from pathlib import Path

if str(Path(__file__).parents[2]) not in sys.path:
    sys.path.insert(0, str(Path(__file__).parents[2]))

from prefect_assay.errors import AssayError, DecisionNeeded
from prefect_assay.orders.stages import Stage
from support.contract.campaign import SEQUENCES, StillWaiting, a_plan, a_setup, complete
from support.contract.forms import FORMS, REFUSALS, UNDESCRIBED
from support.contract.service import ContractService, running

KD = {name: 1e-9 * (index + 1) for index, name in enumerate(SEQUENCES)}  # what the service measures
OUTCOMES = Path(__file__).with_name("outcomes.json")
# Forms that a campaign reads well, for the parts that are not varied.
READABLE = {"results": "published", "quote": "published"}
ROUTES_OF = {
    "detail": ("hosted", "x402", "quoted"), "created": ("hosted", "quoted"), "accepted": ("x402", "mpp"),
    "confirmed": ("quoted", "quoted x402"), "quote": ("quoted",), "invoice": ("hosted", "x402", "quoted x402"),
    "paid": ("x402", "mpp"), "results": ("hosted",), "times": ("hosted", "x402"), "statuses": ("hosted", "x402"),
    "outside": ("hosted", "x402", "quoted"), "estimate": ("hosted",),
}  # fmt: skip
# What is published about the interface, all at once.
PUBLISHED = dict.fromkeys(("detail", "quote", "submitted", "rejected", "paid", "results"), "published")
VARIANTS = {
    "the published shapes": (PUBLISHED, {}, ("hosted", "x402", "mpp", "quoted", "quoted x402")),
    "the published shapes, in a deployment's words": (
        PUBLISHED,
        {"provider": "paymaster"},
        ("hosted", "x402", "mpp", "quoted", "quoted x402"),
    ),
    "the answer to the create is lost, in a deployment's words": (
        PUBLISHED,
        {"provider": "paymaster", "lost": "experiments.create"},
        ("hosted", "x402", "mpp"),
    ),
    **{
        f"{part}: {form}": ({part: form}, {}, routes)
        for part, routes in ROUTES_OF.items()
        for form in FORMS[part]
    },
    **{
        f"create answers {name}": ({}, {"refuses": (*answer, {})}, ("hosted", "x402"))
        for name, answer in REFUSALS.items()
    },
    **{
        f"the answer to {call} is lost; {form}": ({"detail": form}, {"lost": call}, routes)
        for call, routes in {
            "experiments.create": ("hosted", "x402", "mpp", "quoted"),
            "experiments.confirm_quote": ("quoted", "quoted x402"),
            "invoices.pay": ("x402", "mpp"),
        }.items()
        for form in ("the list fields alone", "published", "sequences as previews")
    },
    "the answer to the create is lost, and the list is late": (
        {},
        {"lost": "experiments.create", "unlisted": 99},
        ("hosted", "x402", "quoted"),
    ),
    "the challenge asks for more than was approved": ({}, {"challenge_cents": 25_000}, ("x402", "mpp")),
    "the token's policy has pinned x402-exact": (
        {},
        {"pinned": "x402-exact"},
        ("hosted", "hosted, with an x402 wallet", "mpp"),
    ),
    "no self-service price": ({}, {"priced": False}, ("hosted", "x402")),
    "with a Date": ({}, {"with_date": True}, ("x402", "mpp")),
}


def service_of(variant):
    """The service of a variant."""
    form, options, _ = VARIANTS[variant]
    options = dict(options)
    if "lost" in options:
        options["lost"] = Counter({options["lost"]: 1})
    return ContractService(form={**READABLE, **form}, **options)


_WORDS = {Stage.MEASURED: "done", Stage.INCOMPLETE: "incomplete", Stage.UNREAD: "done, not readable"}


def ended(variant, route, folder):
    """How a campaign of a variant ends, in words, and the service that counts what was ordered and paid."""
    with running(service_of(variant)) as service:
        try:
            setup = a_setup(service, folder, route)
            played = complete(setup, a_plan(setup))
        except DecisionNeeded as question:
            return f"a person is asked{_page(str(question))}", service
        except StillWaiting:
            return "waits", service
        except AssayError as error:
            billed = "" if service.billed or service.made else ", nothing is ordered"
            return f"{type(error).__name__}{billed}", service
    if not played.kept:
        return str(played.stage), service
    rows = [row for row in played.kept[-1].rows if row.level == "summary"]
    design_names = {row.name for row in rows if row.result_id} & SEQUENCES.keys()
    wrong = [
        row for row in rows if row.name in KD and row.kd_M is not None and not isclose(row.kd_M, KD[row.name])
    ]
    assert not wrong, wrong
    valued = {row.name for row in rows if row.name in KD and row.kd_M is not None}
    others = [row for row in rows if row.name not in SEQUENCES]
    words = _WORDS.get(played.stage, str(played.stage))
    if len(design_names) != len(SEQUENCES) and played.stage is not Stage.UNREAD:
        words += f", {len(design_names)} of 3 designs"
    if design_names and not valued:
        words += ", no K_D"
    return words + (f", {len(others)} unmatched" if others else ""), service


def _page(question):
    return ", with the hosted page" if "https://pay.example/hosted/" in question else ""


def ends_of(variant):
    """How a variant ends on each of its routes."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            route: ended(variant, route, Path(folder) / route.replace(" ", "-"))[0]
            for route in VARIANTS[variant][2]
        }


def is_described(variant):
    """Whether each answer of the variant's service is as the description says."""
    form, options, _ = VARIANTS[variant]
    return not UNDESCRIBED & form.items() and "refuses" not in options


if __name__ == "__main__":
    named = [variant for variant in VARIANTS if variant in sys.argv[1:]] or list(VARIANTS)
    known = json.loads(OUTCOMES.read_text(encoding="utf-8")) if OUTCOMES.exists() else {}
    with ProcessPoolExecutor(3) as pool:
        known |= dict(zip(named, pool.map(ends_of, named), strict=True))
    outcomes = {variant: known[variant] for variant in VARIANTS}
    OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
