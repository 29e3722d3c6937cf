"""Artifacts of the Prefect UI: figures, links, tables. No secrets and no decisions."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from prefect.artifacts import (
    LinkArtifact,
    MarkdownArtifact,
    create_link_artifact,
    create_markdown_artifact,
)
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.sorting import ArtifactSort
from prefect.runtime import flow_run as current_run

from prefect_assay.analysis.plots import make_markdown_image
from prefect_assay.analysis.report.images import Image
from prefect_assay.analysis.results import (
    DesignSummary,
    describe_outcomes,
    make_markdown_table,
    summarize,
)
from prefect_assay.analysis.results.formats import make_markdown_cell
from prefect_assay.analysis.results.row import ArchivedResults
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.campaigns.approval.purchase_text import price_markdown, purchase_markdown
from prefect_assay.campaigns.events import emit_fact, kinds
from prefect_assay.campaigns.flow_results import CampaignReport, LoopReport
from prefect_assay.designs.liabilities import design_warnings
from prefect_assay.foreign_text import label_markdown, quote_markdown, safe_link
from prefect_assay.orders.job import Order, Payment, PaymentState
from prefect_assay.orders.payments.reconciliation import PaymentStatus
from prefect_assay.orders.purchase import PurchaseSummary, describe_assay
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR, PaymentMethod
from prefect_assay.service.words import in_words, many

_ROWS_SHOWN: Final = 200
_KEY_DIGITS: Final = 6


def label_of(campaign_id: str, batch_index: int | None = None) -> str:
    """The end of an artifact's key, `my-campaign-1`: Prefect allows lower case, digits and dashes.

    An id with other characters keeps its digest, so that `A.1` and `a-1` stay two.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", campaign_id.lower()).strip("-")
    if plain != campaign_id:
        plain += f"-{hashlib.sha256(campaign_id.encode()).hexdigest()[:_KEY_DIGITS]}"
    return plain if batch_index is None else f"{plain}-{batch_index + 1}"


def show_purchase(plan: Plan, purchase: PurchaseSummary) -> None:
    """What a campaign is about to buy, with the price of each experiment, and how its designs were read."""
    lines = [f"# Estimate for campaign {plan.campaign_id}", "", *purchase_markdown(purchase), ""]
    lines += price_markdown(purchase)
    if plan.reading:
        lines += [
            "",
            "How the designs were read:",
            "",
            *(f"- {quote_markdown(line)}" for line in plan.reading),
        ]
    if plan.duplicates:
        lines += ["", f"{many(len(plan.duplicates), 'duplicate is', 'duplicates are')} left out:", ""]
        shown = plan.duplicates[:_ROWS_SHOWN]
        lines += [f"- {quote_markdown(d.name)} (same as {quote_markdown(d.same_as)})" for d in shown]
    residues = {name: value.aa_string for name, value in plan.sequences.items()}
    if warnings := design_warnings(residues.items()):
        lines += ["", "Worth a second look:", "", *(f"- {quote_markdown(warning)}" for warning in warnings)]
    key = f"assay-campaign-estimate-{label_of(plan.campaign_id)}"
    show_once(MarkdownArtifact(markdown="\n".join(lines), key=key, description=plan.campaign_id))


def describe_purchase(
    campaign_id: str, specs: Sequence[ExperimentSpec], target: str | None
) -> dict[str, str]:
    """What is bought, for a question: who decides has not started the run."""
    residues = [
        len(value.aa_string) - value.aa_string.count(CHAIN_SEPARATOR)
        for spec in specs
        for value in spec.sequences.values()
    ]
    span = f"{min(residues)}" if min(residues) == max(residues) else f"{min(residues)} to {max(residues)}"
    count = "" if len(specs) == 1 else f", {len(specs)} experiments"
    return {
        "designs": f"{len(residues)}, {span} residues{count}",
        "assay": quote_markdown(describe_assay(specs[0], target or specs[0].target_id)),
        "campaign": quote_markdown(campaign_id),
    }


def show_order(label: str, order: Order, account: str) -> None:
    """A link to the experiment in the service's portal."""
    if page := safe_link(order.experiment_url):
        create_link_artifact(
            page,
            link_text=f"Experiment {label_markdown(order.experiment_code or order.experiment_id)}",
            key=f"assay-experiment-{label}",
            description=f"The experiment in the service's portal; {account}",
        )


def show_surplus(label: str, order: Order, account: str) -> None:
    """Other experiments with the order's key: an artifact and an event for each list."""
    if not order.surplus:
        return
    listed = "\n".join(f"- `{experiment_id}`" for experiment_id in order.surplus)
    artifact = MarkdownArtifact(
        key=f"assay-surplus-{label}",
        description="Other experiments of the same order: do not confirm or pay them",
        markdown=f"# Surplus experiments\n\nThe order is experiment {label_markdown(order.experiment_code or order.experiment_id)}. "
        f"These have its key as well, in {quote_markdown(account)}. They are not confirmed and not paid by any run:\n\n{listed}\n\n"
        "Ask the laboratory to cancel them, and do not pay their invoices.\n",
    )
    show_once(artifact)
    emit_fact(
        kinds.OrderSurplus(
            experiment_id=order.experiment_id,
            experiment_code=order.experiment_code,
            order_key=order.order_key,
            surplus=order.surplus,
        )
    )


def show_payment(label: str, payment: Payment, account: str) -> None:
    """The receipt of a machine payment, or the hosted invoice that a person pays, and then that it is paid."""
    page, invoice = safe_link(payment.hosted_invoice_url), label_markdown(payment.invoice_id or "")
    if payment.state is PaymentState.INTENDED and page:
        show_once(
            LinkArtifact(
                link=page,
                link_text=f"Pay invoice {invoice}",
                key=f"assay-invoice-{label}",
                description=f"This invoice over {usd(payment.amount_cents)} is waiting for a person to pay it; {account}",
            )
        )
        return
    hosted = payment.method is PaymentMethod.ASYNC_INVOICE
    paid = payment.state is PaymentState.SETTLED
    lines = [
        f"# Invoice {invoice}{' is paid' if paid else ''}",
        "",
        "| | |",
        "|---|---|",
    ]
    lines += [f"| state | {in_words(payment.state)} |", f"| rail | {in_words(payment.method)} |"]
    lines += [f"| amount | {usd(payment.amount_cents)} |", f"| account | {quote_markdown(account)} |"]
    if payment.remark:
        lines.append(f"| remark | {quote_markdown(payment.remark)}; the invoice is paid |")
    lines += [f"| {name} | {quote_markdown(value)} |" for name, value in (payment.receipt or {}).items()]
    if hosted:
        states = {
            PaymentState.SETTLED: "is paid",
            PaymentState.INTENDED: "has no page yet on which a person pays it",
        }
        what = states.get(payment.state, "cannot be paid any more: ask the laboratory")
        description = f"This invoice over {usd(payment.amount_cents)} {what}"
    else:
        description = "Payment receipt"
    # The newest version of the link that asked for the payment, or the receipt.
    kind = "invoice" if hosted else "receipt"
    show_once(
        MarkdownArtifact(markdown="\n".join(lines), key=f"assay-{kind}-{label}", description=description)
    )


def show_once(artifact: LinkArtifact | MarkdownArtifact) -> UUID:
    """Create an artifact unless this run's newest one with its key is the same: an execution repeats what stands.

    Returns the artifact's id.
    """
    run_id = current_run.id
    same_key = ArtifactFilter(key=ArtifactFilterKey(any_=[str(artifact.key)]))
    with get_client(sync_client=True) as client:
        artifacts = client.read_artifacts(artifact_filter=same_key, sort=ArtifactSort.CREATED_DESC, limit=1)
        if artifacts and (str(artifacts[0].flow_run_id), artifacts[0].data) == (
            str(run_id),
            artifact.format(),
        ):
            return artifacts[0].id
        created = client.create_artifact(
            ArtifactCreate(
                type=artifact.type,
                key=artifact.key,
                description=artifact.description,
                data=artifact.format(),
                flow_run_id=run_id,
            )
        )
    return created.id


def _publish_markdown(lines: list[str], *, key: str, description: str) -> None:
    create_markdown_artifact("\n".join(lines), key=key, description=description)


def begin_sentence(text: str) -> str:
    """Foreign text as the beginning of a sentence, without markup: its first letter in upper case."""
    cell = make_markdown_cell(text)
    return cell[:1].upper() + cell[1:]


def show_results(
    label: str,
    kept: ArchivedResults,
    account: str,
    *,
    designs: Sequence[DesignSummary] = (),
    images: Sequence[Image] = (),
    notes: Sequence[str] = (),
) -> None:
    """The measured values of one experiment with their plots, and the address of its archive."""
    designs = designs or summarize(kept.rows)
    lines = [
        f"# Results of {kept.record.experiment_code}",
        "",
        f"**{make_markdown_cell(describe_outcomes(designs))}**" if designs else "",
        "",
        *(f"- {quote_markdown(line)}" for line in (account, *kept.notes, *notes)),
        "",
        make_markdown_table(designs, limit=_ROWS_SHOWN),
        *_embed_figures(images),
        "",
        f"Archive: `{kept.record.location}` (version {kept.record.version}, {many(kept.record.files, 'file')})",
    ]
    _publish_markdown(lines, key=f"assay-results-{label}", description="Measured values")


def show_campaign(
    plan: Plan,
    report: CampaignReport,
    designs: Sequence[DesignSummary],
    account: str,
    *,
    decision: Sequence[tuple[str, str]] = (),
    opening: str = "",
    images: Sequence[Image] = (),
    notes: Sequence[str] = (),
) -> None:
    """The report of a campaign: what to decide on, its problems, the table and its plots.

    Args:
        plan: the campaign's plan.
        report: the result of its run.
        designs: as the report ranks them.
        account: its name, and whether it is live or simulated.
        decision: titles and lines of the report's summary.
        opening: a link to the report, or the command that opens it.
        images: figures, shown inline.
        notes: what is missing, one line each.
    """
    measured = sum(1 for e in report.experiments if e.location)
    lines = [
        f"# Campaign {plan.campaign_id}",
        "",
        f"**{make_markdown_cell(describe_outcomes(designs))}.**" if designs and not decision else "",
        f"Results of {measured} of {many(len(report.experiments), 'experiment')}.",
        "",
        f"- {quote_markdown(account)}",
        *(f"- **{title}**: {make_markdown_cell(line)}" for title, line in decision),
        *(f"- {quote_markdown(problem)}" for problem in report.problems),
        *(f"- {quote_markdown(note)}" for note in notes),
        "",
        f"Report: {opening}" if report.page and opening else "No report page.",
        "",
        make_markdown_table(designs, limit=_ROWS_SHOWN) if designs else "Nothing was measured.",
        *_embed_figures(images),
        "",
        f"Table of all rows: `{report.table}`" if report.table else "",
        "",
        f"Report in the archive: `{report.page}`" if report.page else "",
    ]
    _publish_markdown(
        lines, key=f"assay-campaign-report-{label_of(plan.campaign_id)}", description=plan.campaign_id
    )


def _embed_figures(images: Sequence[Image]) -> Iterator[str]:
    """Each figure as a paragraph; both of Prefect's user interfaces show a data address."""
    for image in images:
        yield ""
        yield make_markdown_image(image.svg, image.alt)


def show_loop(report: LoopReport, account: str) -> None:
    """The rounds of a design-build-test loop."""
    lines = [
        f"# Loop {report.loop_id}",
        "",
        f"Stopped: {quote_markdown(report.stop_message)}.",
        "",
        f"{quote_markdown(account)}",
        "",
    ]
    if report.best:
        lines += [f"Best: {report.best}. Spent: {usd(report.spent_cents)} without VAT.", ""]
    lines += ["| round | designs | best | spent | table | problem |", "|---|---:|---:|---:|---|---|"]
    for entry in report.rounds:
        spent = "" if entry.spent_cents is None else usd(entry.spent_cents)
        cells = (entry.designs or "", entry.best or "none", spent, entry.table or "")
        lines.append(
            f"| {quote_markdown(entry.name)} | {' | '.join(map(str, cells))} | {quote_markdown(entry.problem or '')} |"
        )
    _publish_markdown(lines, key=f"assay-loop-report-{label_of(report.loop_id)}", description=report.loop_id)


def payment_lines(status: PaymentStatus) -> dict[str, str]:
    """An invoice and its payment, as rows of a table."""
    lines: dict[str, str] = {}
    invoice, entry = status.invoice, status.entry
    if invoice is not None:
        lines["invoice"] = quote_markdown(invoice.id)
        lines["invoice status"] = in_words(invoice.status)
        lines["invoice amount"] = usd(invoice.amount)
        page = safe_link(invoice.provider_hosted_invoice_url)
        if page and not status.paid:  # it works without a token
            lines["invoice page"] = page
    if entry is not None:
        lines["payment"] = f"{usd(entry.amount_cents)} by {entry.rail.value}, {entry.state.value}"
        lines["receiver"] = f"`{entry.pay_to}` ({entry.network}, `{entry.asset}`)"
        lines["reference"] = f"`{entry.nonce}`"
        lines["sent"] = f"{entry.sent_at:%Y-%m-%d %H:%M:%S} UTC"
        lines["valid until"] = f"{entry.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        if entry.remark:
            lines["remark"] = quote_markdown(entry.remark)
    return lines
