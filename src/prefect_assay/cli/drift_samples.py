"""Every operation of the client, built once with everything set and once with as little as possible.

Nothing here is sent: `drift_usage` reads off what the client may send, must send and reads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from prefect_assay.client import (
    custom_targets,
    experiments,
    identity,
    invoices,
    modifying,
    paying,
    pdf,
    quotes,
    results,
    sequences,
    service,
    targets,
    tokens,
    updates,
    webhooks,
)
from prefect_assay.client.pdf import Pdf
from prefect_assay.client.request import Operation
from prefect_assay.client.walking import Pager
from prefect_assay.models import (
    billing,
    custom_target,
    estimate,
    experiment,
    result,
    stored,
    target,
    update,
    webhook,
)
from prefect_assay.models.identity import Identity
from prefect_assay.models.partner import ExistingOrg, MintedToken, MintRequest, NewOrg
from prefect_assay.models.sequences import Sequence
from prefect_assay.models.service import FeedbackReceipt, Health
from prefect_assay.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.models.tokens import AttenuatedToken, Attenuation, Revocation, TokenRecord
from prefect_assay.models.vocabulary import ExperimentType, Method, PaymentMethod

SAMPLE_ID: Final = "{id}"
_UUID: Final = "00000000-0000-4000-8000-000000000000"
_PAGE: Final[dict[str, Any]] = {"limit": 1, "offset": 0}
_LIST: Final[dict[str, Any]] = {**_PAGE, "filter": "eq(a,b)", "search": "x", "sort": "a"}
_DESIGN: Final = Sequence(name="a", aa_string="MKT", control=True, metadata={"type": "IgG"})
_SPEC: Final = ExperimentSpec(
    experiment_type=ExperimentType.AFFINITY,
    method=Method.BLI,
    target_id=_UUID,
    sequences={"a": SequenceValue(aa_string="MKT", control=True, metadata={"type": "IgG"})},
    n_replicates=3,
    antigen_concentrations=(1.0,),
    parameters={},
)
_LEAST_SPEC: Final = ExperimentSpec(
    experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
)
_ORDER: Final = experiment.CreateRequest(
    experiment_spec=_SPEC,
    name="a",
    skip_draft=True,
    auto_accept_quote=True,
    payment_method=PaymentMethod.X402_EXACT,
    webhook_url="https://example.org",
    webhook_secret=SecretStr("0" * 32),
)
_LATER: Final = datetime(9999, 1, 1, tzinfo=UTC)

Sample = Operation[Any] | Pager[Any] | Pdf


@dataclass(frozen=True, slots=True)
class Use:
    """One operation of the client.

    Attributes:
        name: the client's method.
        samples: with everything set, and further ones where a field has several forms.
        reads: what its answer, or a row of it, is read as; several where the status decides. Empty for files.
        listed: whether the answer is a list.
        least: with as little as possible, where that sends less.
        more: fields of the answer that are read without a model.
    """

    name: str
    samples: tuple[Callable[[], Sample], ...]
    reads: tuple[type[BaseModel], ...] = ()
    listed: bool = False
    least: Callable[[], Sample] | None = None
    more: tuple[str, ...] = ()


def _use(name: str, *samples: Callable[[], Sample], reads: Any = (), **more: Any) -> Use:
    return Use(name, samples, reads if isinstance(reads, tuple) else (reads,), **more)


_QUOTE, _ACCEPTANCE = billing.Quote, experiment.QuoteAcceptance
_SELF_SERVICE: Final[dict[str, Any]] = {"selfservice_only": True, "detailed": True, "show_conjugated": True}

USES: Final[tuple[Use, ...]] = (
    _use("whoami", identity.whoami, reads=Identity),
    _use("tokens", lambda: tokens.tokens(**_LIST), reads=TokenRecord, listed=True),
    _use(
        "attenuate_token",
        lambda: tokens.attenuate_token(
            "t",
            Attenuation(
                allowed_actions=("read",),
                allowed_org_ids=(_UUID,),
                allowed_resources=("result",),
                expires_at=_LATER,
                non_destructive=True,
                payment_policy=("x402-exact",),
                read_only=True,
            ),
            "a",
            attenuated_parent_token_id=_UUID,
        ),
        reads=AttenuatedToken,
        least=lambda: tokens.attenuate_token("t", Attenuation(), "a"),
    ),
    _use("revoke_token", tokens.revoke_token, reads=Revocation),
    _use(
        "mint_token",
        *(
            lambda org=org: tokens.mint_token(
                MintRequest(
                    org=org, email="a@b.example", user_name="a", role="member", name="a", expires_at=_LATER
                )
            )
            for org in (NewOrg(name="a"), ExistingOrg(id=_UUID))
        ),
        reads=MintedToken,
        least=lambda: tokens.mint_token(MintRequest(org=NewOrg(name="a"), email="a@b.example")),
    ),
    _use("health", service.health, reads=Health),
    _use("health_db", service.health_db, reads=Health),
    _use(
        "feedback",
        lambda: service.feedback("feedback", _UUID, title="a", human_note="a", json_body={"a": 1}),
        reads=FeedbackReceipt,
        least=lambda: service.feedback("feedback", _UUID),
    ),
    _use("webhooks", webhooks.webhooks, reads=webhook.Webhook, listed=True),
    _use(
        "create_webhook",
        lambda: webhooks.create_webhook("https://example.org", secret="0" * 32, headers={"a": "b"}),
        reads=webhook.Webhook,
        least=lambda: webhooks.create_webhook("https://example.org"),
    ),
    _use(
        "update_webhook",
        lambda: webhooks.update_webhook(
            SAMPLE_ID,
            url="https://example.org",
            secret="0" * 32,
            headers={"a": "b"},
            enabled=True,
        ),
        reads=webhook.Webhook,
        least=lambda: webhooks.update_webhook(SAMPLE_ID),
    ),
    _use("delete_webhook", lambda: webhooks.delete_webhook(SAMPLE_ID)),
    _use(
        "targets",
        lambda: targets.targets(**_LIST, **_SELF_SERVICE, name="a", vendor_name="a"),
        reads=target.Target,
        listed=True,
    ),
    _use("target", lambda: targets.target(SAMPLE_ID), reads=target.Target),
    _use(
        "custom_targets",
        lambda: custom_targets.custom_targets(**_LIST, status="a"),
        reads=custom_target.CustomTarget,
        listed=True,
    ),
    _use("custom_target", lambda: custom_targets.custom_target(SAMPLE_ID), reads=custom_target.CustomTarget),
    _use(
        "request_custom_target",
        lambda: custom_targets.request_custom_target("a", "a", "MKT", "1abc"),
        reads=custom_target.CustomTarget,
        least=lambda: custom_targets.request_custom_target("a", "a", "MKT"),
    ),
    _use(
        "estimate",
        lambda: experiments.estimate(_SPEC),
        reads=estimate.CostEstimate,
        least=lambda: experiments.estimate(_LEAST_SPEC),
    ),
    _use(
        "create",
        lambda: experiments.create(_ORDER, payment_header=PaymentMethod.X402_EXACT),
        reads=(experiment.Created, _ACCEPTANCE),
        least=lambda: experiments.create(experiment.CreateRequest(experiment_spec=_LEAST_SPEC, name="a")),
    ),
    _use(
        "experiments",
        lambda: experiments.experiments(
            **_LIST, status="a", state="a", experiment_type="a", results_status="a"
        ),
        reads=experiment.ExperimentSummary,
        listed=True,
    ),
    _use("experiment", lambda: experiments.experiment(SAMPLE_ID), reads=experiment.Experiment),
    _use("submit", lambda: experiments.submit(SAMPLE_ID), reads=experiment.Submitted),
    _use(
        "modify",
        lambda: modifying.modify(
            SAMPLE_ID,
            name="a",
            description="a",
            target_id=_UUID,
            antigen_concentrations=[1.0],
            n_replicates=3,
            parameters={},
            sequences=[_DESIGN],
            webhook_url="https://example.org",
        ),
        reads=experiment.Modified,
        least=lambda: modifying.modify(SAMPLE_ID),
    ),
    _use(
        "add_sequences",
        lambda: sequences.add_sequences("a", [_DESIGN]),
        reads=stored.AddedSequences,
        least=lambda: sequences.add_sequences("a", [Sequence(name="a", aa_string="MKT")]),
    ),
    _use(
        "sequences",
        lambda: sequences.sequences(**_LIST, experiment_id=_UUID),
        reads=stored.StoredSequence,
        listed=True,
    ),
    _use("sequence", lambda: sequences.sequence(SAMPLE_ID), reads=stored.StoredSequence),
    _use(
        "experiment_sequences",
        lambda: sequences.experiment_sequences(SAMPLE_ID, **_PAGE),
        reads=stored.StoredSequence,
        listed=True,
    ),
    _use("quote", lambda: quotes.quote(SAMPLE_ID), reads=_QUOTE),
    _use("quote_pdf", lambda: pdf.quote_pdf(SAMPLE_ID)),
    _use(
        "confirm_quote",
        lambda: quotes.confirm_quote(SAMPLE_ID, "a", "a"),
        reads=_ACCEPTANCE,
        least=lambda: quotes.confirm_quote(SAMPLE_ID),
    ),
    _use("quotes", lambda: quotes.quotes(**_LIST, status="a"), reads=_QUOTE, listed=True),
    _use("quote_by_id", lambda: quotes.quote_by_id(SAMPLE_ID), reads=_QUOTE),
    _use(
        "confirm_quote_by_id",
        lambda: quotes.confirm_quote_by_id(SAMPLE_ID, "a", "a"),
        reads=_ACCEPTANCE,
        least=lambda: quotes.confirm_quote_by_id(SAMPLE_ID),
    ),
    _use(
        "reject_quote",
        lambda: quotes.reject_quote(SAMPLE_ID, "price", "a"),
        reads=_QUOTE,
        least=lambda: quotes.reject_quote(SAMPLE_ID, "price"),
    ),
    _use("invoice", lambda: invoices.invoice(SAMPLE_ID), reads=billing.ExperimentInvoice),
    _use("invoices", lambda: invoices.invoices(**_LIST, status="a"), reads=billing.Invoice, listed=True),
    _use("invoice_by_id", lambda: invoices.invoice_by_id(SAMPLE_ID), reads=billing.Invoice),
    _use("invoice_pdf", lambda: pdf.invoice_pdf(SAMPLE_ID)),
    _use("pay", lambda: paying.pay(SAMPLE_ID), more=("already_paid",)),
    _use("results", lambda: results.results(SAMPLE_ID), reads=result.Result, listed=True),
    _use("result", lambda: results.result(SAMPLE_ID), reads=result.Result),
    _use(
        "result_summaries",
        lambda: results.result_summaries(**_LIST),
        reads=result.ResultSummary,
        listed=True,
    ),
    _use("updates", lambda: updates.updates(**_LIST), reads=update.Update, listed=True),
    _use(
        "experiment_updates", lambda: updates.experiment_updates(SAMPLE_ID), reads=update.Update, listed=True
    ),
)
