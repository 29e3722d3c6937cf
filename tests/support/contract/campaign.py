"""A campaign of one experiment as a run plays it, without Prefect, against a service with the contract's calls alone.

Everything but Prefect is real: HTTP, the client, the plan, the ledgers, the rails, the archive in a folder. Nothing is
suspended: where a deployed run would wait for a person, `play` ends with `DecisionNeeded`, and waits that never end are
`StillWaiting`.
"""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from prefect import Task
from prefect.logging import disable_run_logger
from pydantic import SecretStr

from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    SharedPaymentTokens,
    SpendingPolicy,
    X402Wallet,
)
from prefect_assay.campaigns import advance, artifacts, play, suspension
from prefect_assay.campaigns.approval import price, questions
from prefect_assay.campaigns.flow_results import CampaignReport
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.identity import order_key
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks import archive as archiving
from prefect_assay.tasks.collate import save_plan
from prefect_assay.tasks.report import ResultPlots
from support.accounts import AMOUNT_USD, make_account, make_options
from support.contract.service import NETWORK, NETWORK_ID, RECEIVER, TARGET, TOKEN, USDC
from support.x402 import CANARY_KEY

CAMPAIGN = "camp"
SEQUENCES = {"D0": "MKTAYIAKQRQISFVKSHFSRQ", "binder-2": "GSHMKLVFFAEDVGSNKGAII", "c": "ACDEFGHIKLMNPQRSTVWY"}
LOOKS = 60


class StillWaiting(Exception):
    """A run has looked often, and would go on."""


class _Plain:
    """A task without Prefect."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *arguments, **options):
        return self._function(*arguments, **options)


def a_setup(service, folder, route, *, accept_quotes=True, machine_payments=True):
    """The blocks and options of a campaign on a route, with everything that it may spend."""
    methods = {
        "x402": PaymentMethod.X402_EXACT,
        "mpp": PaymentMethod.MPP_SPT,
        "quoted x402": PaymentMethod.X402_EXACT,
    }
    wallet = None
    if "x402" in route:
        wallet = X402Wallet(private_key=CANARY_KEY, networks=[NETWORK], assets=[USDC], pay_to=[RECEIVER])
    if "mpp" in route:
        wallet = SharedPaymentTokens(
            issuer_url="http://127.0.0.1:9/issue", issuer_key="key", network_ids=[NETWORK_ID]
        )
    account = make_account(
        credentials=AssayCredentials(base_url=service.base_url, token=TOKEN, provider_word=service.provider),
        policy=SpendingPolicy(
            per_experiment_usd=1_000,
            per_campaign_usd=5_000,
            rolling_usd=10**7,
            machine_payments=machine_payments,
            accept_quotes=accept_quotes,
        ),
        archive=LocalArchive(root=str(folder)),
        wallet=wallet,
        payment_method=methods.get(route),
    )
    return CampaignSetup(account, make_options(request_quote=route.startswith("quoted"), poll_seconds=0.0005))


def a_plan(setup, *, kind="affinity", sequences=None, campaign_id=CAMPAIGN, spec=None):
    """The archived plan of one experiment."""
    binding = kind in {"affinity", "screening"}
    spec = spec or ExperimentSpec.model_validate(
        {
            "experiment_type": kind,
            "method": "bli" if binding else None,
            "target_id": TARGET["id"] if binding else None,
            "sequences": {n: {"aa_string": s} for n, s in (sequences or SEQUENCES).items()},
        }
    )
    planned = PlannedExperiment(order_key=order_key(campaign_id, 0, spec), batch_index=0, spec=spec)
    plan = Plan(
        campaign_id=campaign_id,
        archive_id=setup.ledgers.archive_id,
        source="designs",
        assay=Assay(experiment_type=kind, target=TARGET["name"] if binding else None),
        experiments=(planned,),
    )
    save_plan.fn(setup.archive, plan)
    return plan


class Played:
    """How a campaign has ended: the stage and the problem of its order, and what was archived."""

    def __init__(self):
        self.kept, self.pauses, self.stage, self.problem = [], 0, None, None
        self._archive = archiving.archive_experiment.fn

    def archive(self, *arguments, **options):
        self.kept.append(kept := self._archive(*arguments, **options))
        return kept

    def pause(self):
        self.pauses += 1
        if self.pauses > LOOKS:
            raise StillWaiting
        return 0.0

    def end(self, _setup, plan, _log, orders, stages, problems):
        self.stage, self.problem = stages[orders[0].key], problems.get(orders[0].key)
        return CampaignReport(campaign_id=plan.campaign_id, experiments=(), rows=0, table=None)


def _replaced(played):
    for module in (advance, price):
        yield from (
            (module, name, _Plain(value.fn))
            for name, value in list(vars(module).items())
            if isinstance(value, Task)
        )
    yield advance, "archive_experiment", played.archive
    yield advance, "plot_results", lambda *_: ResultPlots()
    yield suspension.PollPolicy, "pause_seconds", lambda _policy, _attempt: played.pause()
    yield play, "report_campaign_end", played.end
    yield play, "show_progress", lambda *_: None
    yield SharedPaymentTokens, "get_issuer", lambda _: lambda limits: SecretStr("spt_contract")
    for module, name in (
        (artifacts, "create_markdown_artifact"),
        (artifacts, "create_link_artifact"),
        (artifacts, "show_once"),
        (questions, "show_once"),
    ):
        yield module, name, lambda *_, **__: None


@contextmanager
def without_prefect():
    """The steps as plain functions; yields how the campaign ends."""
    played = Played()
    with ExitStack() as stack, disable_run_logger():
        for place, name, value in _replaced(played):
            stack.enter_context(patch.object(place, name, value))
        stack.enter_context(patch.dict(find_or_create.__kwdefaults__, patience=(0.0,) * 3))
        stack.enter_context(patch.dict(settle.__kwdefaults__, read_delays=(0.0, 0.0)))
        yield played


def begin(setup, plan):
    """The campaign of one execution."""
    return play.begin_campaign(setup, plan, unasked_cents=round(AMOUNT_USD * 100))


def complete(setup, plan):
    """Play the campaign to its end; how it has ended."""
    with without_prefect() as played:
        campaign = begin(setup, plan)
        play.approve_price(campaign)
        play.play_orders(campaign)
        return played
