"""One experiment by the steps of the flow, without Prefect, against a service with the contract's calls alone.

Everything but Prefect is real: HTTP, the client, the order's log, the rails, the archive in a folder. A deployed run's
questions end the campaign as `Asked`, and waits that never end as `StillWaiting`.
"""

import sys
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from prefect import Task
from prefect.logging import disable_run_logger
from pydantic import SecretStr

from prefect_assay import ordering, payments
from prefect_assay.approvals.spending import Approval
from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    SharedPaymentTokens,
    SpendingPolicy,
    X402Wallet,
)
from prefect_assay.flows import experiment_billing, experiment_steps
from prefect_assay.flows.run_options import ExperimentRun, RunOptions
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.runs import suspend
from prefect_assay.tasks import archive as archiving
from prefect_assay.tasks.report import ResultPlots
from support.contract.service import NETWORK, NETWORK_ID, RECEIVER, TARGET, TOKEN, USDC
from support.services.pay_server import CANARY_KEY

flow = sys.modules["prefect_assay.flows.experiment"]  # the package exports the flow under this name

ROUTES = ("hosted", "x402", "mpp", "quoted", "quoted x402")
SEQUENCES = {"D0": "MKTAYIAKQRQISFVKSHFSRQ", "binder-2": "GSHMKLVFFAEDVGSNKGAII", "c": "ACDEFGHIKLMNPQRSTVWY"}
LOOKS = 60


class Asked(Exception):
    """A deployed run asks a person."""


class StillWaiting(Exception):
    """A run has looked often, and would go on."""


class _Plain:
    """A task without Prefect."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *given, **options):
        return self._function(*given, **options)

    def with_options(self, **_):
        return self


def a_run(
    service, folder, route, *, kind="affinity", accept_quotes=True, machine_payments=True, sequences=None
):
    """The run of one experiment on a route, with everything that it may spend."""
    methods = {
        "x402": PaymentMethod.X402_EXACT,
        "mpp": PaymentMethod.MPP_SPT,
        "quoted x402": PaymentMethod.X402_EXACT,
    }
    method = methods.get(route, PaymentMethod.ASYNC_INVOICE)
    wallet = None
    if "x402" in route:
        wallet = X402Wallet(private_key=CANARY_KEY, networks=[NETWORK], assets=[USDC], pay_to=[RECEIVER])
    if "mpp" in route:
        wallet = SharedPaymentTokens(issuer_url="http://127.0.0.1:9/issue", issuer_key="key")
    options = RunOptions(
        credentials=AssayCredentials(base_url=service.base_url, token=TOKEN, provider_word=service.provider),
        policy=SpendingPolicy(
            per_experiment_cents=100_000,
            per_campaign_cents=500_000,
            rolling_cents=10**9,
            machine_payments=machine_payments,
            accept_quotes=accept_quotes,
            network_ids=[NETWORK_ID],
        ),
        archive=LocalArchive(root=str(folder)),
        payment_method=method,
        wallet=wallet,
        webhook=None,
        request_quote=route.startswith("quoted"),
        deadline_days=45,
        poll_seconds=0.0005,
    )
    binding = kind in {"affinity", "screening"}
    spec = ExperimentSpec.model_validate(
        {
            "experiment_type": kind,
            "method": "bli" if binding else None,
            "target_id": TARGET["id"] if binding else None,
            "sequences": {n: {"aa_string": s} for n, s in (sequences or SEQUENCES).items()},
        }
    )
    return ExperimentRun(options, spec=spec, campaign_id="camp", batch_index=0, batch_count=1)


class Seen:
    """What a run has archived, and how often it has waited."""

    def __init__(self):
        self.kept, self.pauses = [], 0
        self._archive = archiving.archive_experiment.fn

    def archive(self, *given, **options):
        self.kept.append(kept := self._archive(*given, **options))
        return kept

    def pause(self, _attempt):
        self.pauses += 1
        if self.pauses > LOOKS:
            raise StillWaiting
        return 0.0


def _approve(_policy, *, what, amount_cents, cap_cents, because=None, **_):
    if amount_cents <= cap_cents and because is None:
        return Approval(amount_cents, "the cap")
    raise Asked(f"{what} {because or 'over the cap'}")


def _ask(_run, _order, why, **_):
    raise Asked(why)


def _which(*_, error, **__):
    raise Asked(str(error))


def _nothing(*_, **__):
    return None


def _tasks_and_reports():
    """Tasks as plain functions, and nothing shown in Prefect."""
    for module in (flow, experiment_billing, experiment_steps):
        yield from (
            (module, name, _Plain(value.fn))
            for name, value in list(vars(module).items())
            if isinstance(value, Task)
        )
        for name in ("artifacts", "facts"):
            if hasattr(module, name):
                yield (
                    module,
                    name,
                    SimpleNamespace(payment_labels=lambda _: {}, **_silent(getattr(module, name))),
                )


def _replaced(seen):
    yield from _tasks_and_reports()
    yield flow, "emit", _nothing
    yield flow, "require_blocks", _nothing
    yield experiment_billing, "require_blocks", _nothing
    yield experiment_steps, "archive_experiment", seen.archive
    yield experiment_steps, "plot_results", lambda *_: ResultPlots()
    yield experiment_steps, "show_progress_of", _nothing
    yield experiment_steps, "set_labels", _nothing
    yield suspend.PollPolicy, "pause", lambda _policy, attempt: seen.pause(attempt)
    yield SharedPaymentTokens, "get_issuer", lambda _: lambda limits: SecretStr("spt_contract")


def _deployed():
    """A deployed run's questions."""
    yield experiment_billing, "can_suspend", lambda: True
    yield experiment_billing, "approve_spending", _approve
    yield experiment_billing, "_ask_about_payment", _ask
    yield experiment_billing, "payment_decision", _nothing
    yield experiment_billing, "which_order", _which
    yield experiment_billing, "set_labels", _nothing


@contextmanager
def without_prefect(*, deployed=False):
    """The steps as plain functions; yields what was archived, and how often the run has waited."""
    seen = Seen()
    with ExitStack() as stack, disable_run_logger():
        for place, name, value in (*_replaced(seen), *(_deployed() if deployed else ())):
            stack.enter_context(patch.object(place, name, value))
        stack.enter_context(patch.dict(ordering.find_or_create.__kwdefaults__, patience=(0.0,) * 3))
        stack.enter_context(patch.dict(payments.settle.__kwdefaults__, read_delays=(0.0, 0.0)))
        yield seen


def _silent(module):
    return {
        name: lambda *_, **__: None
        for name, value in vars(module).items()
        if callable(value) and name != "payment_labels"
    }


def complete(run, *, deployed=False):
    """Its report, and what was archived."""
    with without_prefect(deployed=deployed) as seen:
        return flow._find_and_complete(run), seen.kept
