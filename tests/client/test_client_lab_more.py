"""The rest of the client over the local lab: tokens, partners, webhooks, custom targets, files, lists, the service itself."""

import pickle
import traceback
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from pydantic import SecretStr

from prefect_assay import errors
from prefect_assay.client import filters as f
from prefect_assay.client import parameters as p
from prefect_assay.client.operations.tokens import ACTIONS
from prefect_assay.lab.testing import LocalLab
from prefect_assay.lab.tokens.permissions import ACTIONS as LAB_ACTIONS
from prefect_assay.models.experiment import CreateRequest
from prefect_assay.models.service import WireWords
from prefect_assay.models.spec import CustomTargetStatus, ExperimentSpec, SequenceValue
from prefect_assay.models.tokens import Attenuation
from prefect_assay.models.vocabulary import ExperimentType, InvoiceStatus, Method, QuoteStatus
from support.interface.faces import Face

SECRET = "webhook-canary-" + "s" * 32
HEADER_SECRET = "canary-header"


@pytest.fixture(scope="module")
def lab():
    with LocalLab(options=("--provider-word", "acme", "--service-word", "Foo")) as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def face(request, lab):
    words = WireWords(provider="acme", service="Foo")
    return Face(request.param, lab.base_url, {"words": words}, token=lab.token)


def with_token(face, token):
    value = token.get_secret_value() if isinstance(token, SecretStr) else token
    return Face(face.kind, face.base_url, face.options, token=value)


@pytest.fixture(scope="module")
def quoted(lab):
    """Experiments whose quotes are sent, and whose designs have names of their own."""
    words = WireWords(provider="acme", service="Foo")
    once = Face("sync", lab.base_url, {"words": words}, token=lab.token)
    target = once("targets", selfservice_only=True, limit=1).items[0].id
    made = []
    for number in range(4):
        spec = ExperimentSpec(
            experiment_type=ExperimentType.AFFINITY,
            method=Method.BLI,
            target_id=target,
            sequences={f"more-{number}": SequenceValue(aa_string="MKTAYIAKQR" + "ACDE"[number])},
        )
        request = CreateRequest(experiment_spec=spec, name=f"more {number}", skip_draft=True)
        made.append(once("create", request).experiment_id)
    lab.advance(days=1)
    return made


def test_a_token_is_narrowed_listed_and_revoked(face, lab, caplog):
    parent = face("attenuate_token", lab.token, Attenuation(non_destructive=False), "root")
    root = with_token(face, parent.token)
    until = datetime.now(UTC) + timedelta(days=3000)
    restrictions = Attenuation(allowed_actions=("read", "list"), read_only=True, expires_at=until)
    narrow = root(
        "attenuate_token",
        SecretStr(root.token),
        restrictions,
        "for reading",
        attenuated_parent_token_id=parent.id,
    )
    value = narrow.token.get_secret_value()
    for shown in (repr(narrow), str(narrow), narrow.model_dump_json(), caplog.text):
        assert value not in shown

    reader = with_token(face, narrow.token)
    assert reader("experiments", limit=1).count <= 1
    with pytest.raises(errors.Forbidden):
        reader("request_custom_target", "n", f"p-{uuid4()}", "MKT")

    record = next(row for row in face("iter_tokens", page_size=2) if row.id == narrow.id)
    assert record.name == "for reading"
    assert record.attenuation_spec["read_only"] is True
    assert set(ACTIONS) == set(LAB_ACTIONS)


def test_webhooks_are_made_changed_and_taken_away(face):
    made = face("create_webhook", "https://hooks.example/a", secret=SECRET, headers={"X-Key": HEADER_SECRET})
    assert (made.url, made.secret_set) == ("https://hooks.example/a", True)
    assert SECRET not in repr(made)
    assert HEADER_SECRET not in repr(made)
    assert made.id in {row.id for row in face("webhooks")}
    changed = face("update_webhook", made.id, enabled=False, url="https://hooks.example/b")
    assert (changed.url, changed.enabled, changed.secret_set) == ("https://hooks.example/b", False, True)
    assert changed.headers == {"X-Key": HEADER_SECRET}
    assert face("update_webhook", made.id, headers=None).headers == {}
    assert face("update_webhook", made.id, secret=None).secret_set is False
    assert face("delete_webhook", made.id) is None
    with pytest.raises(errors.NotFound):
        face("delete_webhook", made.id)


def test_a_webhooks_secrets_are_in_no_error(face, lab):
    lab.fault("status", path="/api/v1/webhooks", method="POST", status=503)
    with pytest.raises(errors.OutcomeUnknown, match="List the webhooks") as caught:
        face("create_webhook", "https://hooks.example/a", secret=SECRET, headers={"X-Key": HEADER_SECRET})
    shown = "".join(traceback.format_exception(caught.value)) + str(pickle.dumps(caught.value))
    assert SECRET not in shown
    assert HEADER_SECRET not in shown


def test_a_custom_target_is_requested(face):
    product = f"own-{uuid4()}"
    told = {
        "vendor": "Antigens Ltd",
        "note": "the glycosylated form",
        "product_url": "https://antigens.example/1",
        "molecular_weight": 47.5,
    }
    asked = face("request_custom_target", "My antigen", product, "MKTAYIAKQR", **told)
    assert {name: getattr(asked, name) for name in told} == told
    assert asked.status is CustomTargetStatus.PENDING_REVIEW
    assert face("custom_target", asked.id) == asked
    assert [row.id for row in face("iter_custom_targets", where=[p.plain("product_id", product)])] == [
        asked.id
    ]
    with pytest.raises(errors.Conflict):
        face("request_custom_target", "Again", product, pdb_id="1ABC")


def test_targets_are_narrowed_in_every_way(face):
    one = face("targets", limit=1).items[0]
    assert [t.id for t in face("iter_targets", name=one.name)] == [one.id]
    assert one.id in {t.id for t in face("iter_targets", vendor_name=one.vendor_name, show_conjugated=True)}
    assert face("targets", where=[p.equ("name", one.name)], detailed=True).items[0].details is not None


def test_quotes_and_invoices_are_lists_and_files(face, lab, quoted):
    mine = quoted.pop()
    assert face("quote_pdf", mine).startswith(b"%PDF")
    shown = face("quote", mine)
    (row,) = [q for q in face("iter_quotes", page_size=2) if q.provider_quote_url == shown.provider_quote_url]
    assert row.amount_total == shown.amount_total > 0
    whole = face("quote_by_id", row.id)
    assert sum(item.total_cents for item in whole.line_items) == whole.amount_subtotal
    assert row.id in {q.id for q in face("quotes", where=[p.geq("created_at", row.created_at)]).items}
    assert row.id not in {q.id for q in face("quotes", where=[p.gtr("created_at", row.created_at)]).items}

    accepted = face("confirm_quote_by_id", row.id, notes="by its own id")
    assert accepted.status == QuoteStatus.ACCEPTED
    invoice = face("find_invoice", mine)
    assert face("invoice_pdf", invoice.id).startswith(b"%PDF")
    assert face("invoice_pdf", invoice.provider_invoice_id).startswith(b"%PDF")
    found = face("iter_invoices", where=[p.equ("provider_invoice_id", invoice.provider_invoice_id)])
    assert [i.id for i in found] == [invoice.id]
    assert invoice.id in {i.id for i in face("iter_invoices", status=InvoiceStatus.OPEN, sort="-created_at")}
    with pytest.raises(errors.Conflict):
        face("confirm_quote_by_id", row.id)


def test_a_file_that_is_not_there_yet(face, lab, quoted):
    spec = ExperimentSpec(
        experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
    )
    draft = face("create", CreateRequest(experiment_spec=spec, name="draft")).experiment_id
    with pytest.raises(errors.NotReady):
        face("quote_pdf", draft)
    with pytest.raises(errors.NotFound):
        face("invoice_pdf", "in_nothing")


def test_sequences_of_the_whole_organization(face, quoted):
    names = {s.name for s in face("iter_sequences", search="more-", page_size=2)}
    assert names == {"more-0", "more-1", "more-2", "more-3"}
    (own,) = face("iter_sequences", experiment_id=quoted[0])
    assert (own.name, own.experiment_id) == ("more-0", quoted[0])
    assert face("sequences", where=[p.equ("name", "more-1")], sort=f.desc("name")).total == 1


def test_experiments_are_narrowed_by_parameters(face, quoted):
    wanted = face("experiment", quoted[0])
    span = [
        p.geq("created_at", wanted.created_at),
        p.leq("created_at", wanted.created_at),
        p.equ("id", wanted.id),
    ]
    assert [e.id for e in face("iter_experiments", where=span, experiment_type="affinity")] == [wanted.id]
    assert face("experiments", where=span, experiment_type="screening").total == 0
    this = f.eq("id", wanted.id)
    for options in ({"where": span}, {"filter": this}, {"filter": str(this)}):
        assert face("experiments", results_status="none", **options).items[0].id == wanted.id
        assert face("experiments", results_status="all", **options).total == 0
        assert [e.id for e in face("iter_experiments", results_status="none", **options)] == [wanted.id]
    with pytest.raises(errors.RequestRefused):
        face("experiments", experiment_type="tasting")


def test_the_service_itself(face, lab):
    assert face("health").ok
    assert face("health_db").ok
    assert face("health_db").db == "ok"
    lab.fault("status", path="/api/v1/info/health-db", status=503)
    assert face("health_db").ok is False
    receipt = face("feedback", "bug_report", str(uuid4()), title="t", json_body={"acme_x": 1})
    assert receipt.reference
    assert "/api/v1/experiments" in face("openapi")["paths"]
    assert "/api/v1/partners/mint-token" in with_token(face, lab.partner_token)("openapi")["paths"]
    without = Face(face.kind, face.base_url, face.options, token=None)
    assert without("health").ok
    with pytest.raises(errors.Unauthorized):
        without("whoami")
