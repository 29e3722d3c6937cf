"""All seven experiment types, from the order to the archive: deployed and in a script, on every rail."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial

import httpx
import pytest

from prefect_assay.archive import LocalStore, verify_versions
from prefect_assay.blocks import SharedPaymentTokens, SpendingPolicy
from prefect_assay.campaigns.flow_results import CampaignReport
from prefect_assay.flows import campaign
from prefect_assay.service.assays import BINDING_TYPES
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import MACHINE_RAILS, ExperimentType, PaymentMethod
from support.accounts import flow_parameters
from support.runs.world import EGFR, eventually
from support.services.issuer import ISSUER_KEY, issuer_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(540)]

KINDS, RAILS = list(ExperimentType), list(PaymentMethod)
# epitope_binning takes at least four.
DESIGNS = {name: f"MKTAYIAKQR{name * 3}" for name in "ACDE"}
PATIENCE = 240


@pytest.fixture(scope="module")
def blocks(world):
    """The parameters that all runs share, and the wallet of each rail."""
    policy = SpendingPolicy(
        accept_quotes=True,
        per_experiment_cents=2_000_000,
        per_campaign_cents=5_000_000,
        machine_payments=True,
        rolling_cents=500_000_000,
    )
    policy.save("types-policy", overwrite=True)
    with issuer_server() as issuer:
        tokens = SharedPaymentTokens(
            issuer_url=issuer.url,
            issuer_key=ISSUER_KEY,
            network_ids=[world.stack.lab.rail("mpp-spt")["network_id"]],
        )
        tokens.save("types-tokens", overwrite=True)
        yield world.shared() | {"policy": policy}, {"x402-exact": world.wallet, "mpp-spt": tokens}


@dataclass(frozen=True)
class Case:
    """One experiment type, paid by one rail."""

    campaign_id: str
    kind: ExperimentType
    rail: PaymentMethod

    def parameters(self, blocks):
        """What the flow is called with."""
        shared, wallets = blocks
        given = shared | {"campaign_id": self.campaign_id, "payment_method": self.rail.value}
        assay = Assay(experiment_type=self.kind, target=EGFR if self.kind in BINDING_TYPES else None)
        fasta = "".join(f">{name}\n{residues}\n" for name, residues in DESIGNS.items())
        given |= {"designs": fasta, "assay": assay}
        return given | ({"wallet": wallets[self.rail]} if self.rail in wallets else {"wallet": None})

    def check(self, world, end):
        """Ordered once, by the right route; paid once, by the right rail; measured and archived."""
        (order,) = world.orders(self.campaign_id)
        paths = {request["path"] for request in world.stack.lab.journal(method="POST")}
        confirmed = f"/api/v1/experiments/{order.id}/quote/confirm" in paths
        assert confirmed == (self.kind not in BINDING_TYPES)
        (settled,) = world.settlements(self.campaign_id)
        invoice = world.service.invoices.find_for_experiment(order.id)
        assert (settled["payment_method"], settled["amount_cents"]) == (self.rail, invoice.amount)
        assert end.problems == ()
        assert end.rows >= len(DESIGNS)
        assert verify_versions(LocalStore(world.folder / "archive"), self.campaign_id).ok


def cases(where, shift):
    """All types; every rail is used, and another shift gives every type another rail."""
    return [
        Case(f"{where}-{kind}", kind, RAILS[(number + shift) % len(RAILS)])
        for number, kind in enumerate(KINDS)
    ]


def days(world, wanted, *, quiet=lambda: True):
    """Let the laboratory's days pass in three steps, and pay the hosted invoices in between."""

    def ordered():
        found = {case: world.orders(case.campaign_id) for case in wanted}
        return {case: orders[0].id for case, orders in found.items()} if all(found.values()) else None

    def invoices(*, paid=frozenset()):
        found = {invoice.experiment_id: invoice for invoice in world.service.invoices.iterate()}
        have = {case: found.get(order) for case, order in orders.items()}
        done = all(
            invoice and (case.rail not in paid or invoice.status == "paid") for case, invoice in have.items()
        )
        return have if done and quiet() else None

    orders = eventually(ordered, seconds=PATIENCE, what="all orders")
    eventually(quiet, seconds=PATIENCE, what="all runs to wait")
    world.advance(days=2)  # quotes are sent, accepted and invoiced
    billed = eventually(partial(invoices, paid=MACHINE_RAILS), seconds=PATIENCE, what="machine payments")
    for case, invoice in billed.items():
        if case.rail is PaymentMethod.ASYNC_INVOICE:
            address = invoice.provider_hosted_invoice_url.rstrip("/")
            assert httpx.post(f"{address}/pay", follow_redirects=True).is_success
    world.advance(days=20)


def run_here(world, blocks, wanted):
    """Call the flow for each case side by side in this process, and check how they end."""
    with ThreadPoolExecutor(len(wanted)) as pool:
        ends = [
            pool.submit(
                copy_context().run,
                partial(
                    campaign,
                    **flow_parameters(case.parameters(blocks) | {"webhook": None, "poll_seconds": 2.0}),
                ),
            )
            for case in wanted
        ]
        try:
            days(world, wanted)
        finally:
            while not all(
                end.done() for end in ends
            ):  # also after a failure: the threads end with their experiments
                world.advance(days=5)
                time.sleep(1)
    for case, end in zip(wanted, ends, strict=True):
        case.check(world, end.result())


def test_an_assay_without_a_target_is_ordered_by_quote(world, blocks):
    run_here(world, blocks, [Case("untargeted", ExperimentType.THERMOSTABILITY, PaymentMethod.ASYNC_INVOICE)])


@pytest.mark.long
def test_every_type_in_a_script(world, blocks):
    run_here(world, blocks, cases("script", 2))


@pytest.mark.long
def test_every_type_deployed(world, blocks):
    wanted = cases("deployed", 0)
    runs = {}
    for case in wanted:
        given = case.parameters(blocks)
        runs[case] = world.start("campaign", **{k: v for k, v in given.items() if v is not None})

    def quiet():
        waiting = all(world.run(run).state.name == "Suspended" for run in runs.values())
        return waiting and not world.stack.runner_processes()

    days(world, wanted, quiet=quiet)
    for case in wanted:
        done = world.until(runs[case], "Completed", seconds=PATIENCE)
        case.check(world, world.result(done, CampaignReport))
