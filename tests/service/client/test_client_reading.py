import json
from datetime import UTC, datetime

import pytest

from prefect_assay import errors
from prefect_assay.service.client.http.failures import result
from prefect_assay.service.client.http.request import Answer, encode_query, quote_segment
from prefect_assay.service.models.experiment import Created, CreateRequest, QuoteAcceptance
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.vocabulary import ExperimentType, PaymentMethod
from support.client import operations

ACME = WireWords(provider="acme", service="Foo")
SPEC = ExperimentSpec(
    experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
)
TARGET = "00000000-0000-4000-8000-000000000001"
ROW = {"id": "u1", "experiment_id": "e1", "timestamp": "2026-11-21T12:00:00Z"}


def answer(body, status=200, words=None):
    return Answer(status=status, content=json.dumps(body).encode(), words=words or WireWords())


@pytest.mark.parametrize(
    ("body", "total"),
    [
        ({"items": [ROW], "total": 7, "count": 1, "offset": 0}, 7),
        ({"updates": [ROW], "next_cursor": None}, 1),
        ([ROW], 1),
        ({"items": [ROW], "total": None, "count": "many"}, 1),
    ],
)
def test_a_page_is_read_in_every_published_form(body, total):
    page = result(operations.updates.list(), answer(body))
    assert [row.id for row in page.items] == ["u1"]
    assert (page.total, page.count, page.offset) == (total, 1, 0)


@pytest.mark.parametrize("body", [{}, {"items": None}, {"items": {}}, 3, None, {"items": [{"id": 1}]}])
def test_a_malformed_list_is_an_unexpected_answer(body):
    with pytest.raises(errors.UnexpectedAnswer, match="GET /updates"):
        result(operations.updates.list(), answer(body))


def test_unknown_statuses_and_fields_are_kept():
    body = {
        "id": "e",
        "code": "c",
        "status": "BeingPolished",
        "created_at": "2026-11-21T12:00:00Z",
        "new": [1],
    }
    experiment = result(operations.experiments.get("e"), answer(body))
    assert experiment.status == "being_polished"
    assert experiment.model_extra["new"] == [1]


def order(spec=SPEC, **fields):
    return operations.experiments.create(CreateRequest(experiment_spec=spec, name="pa-1", **fields))


def test_the_two_answers_of_a_create_are_distinguished():
    created = result(order(), answer({"experiment_id": "e1", "costs": {}}, 201))
    assert isinstance(created, Created)
    accepted = result(
        order(payment_method=PaymentMethod.X402_EXACT),
        answer({"id": "q1", "status": "accepted", "invoice_id": "i1", "payment": {"kind": "machine"}}),
    )
    assert isinstance(accepted, QuoteAcceptance)
    with_both = {"id": "q1", "status": "accepted", "experiment_id": "e1"}
    assert isinstance(result(order(), answer(with_both, 200)), QuoteAcceptance)
    assert isinstance(result(order(), answer(with_both, 201)), Created)


def test_names_that_users_give_are_left_alone():
    body = {
        "id": "e",
        "code": "c",
        "created_at": "2026-11-21T12:00:00Z",
        "status": "done",
        "acme_quote_url": "https://x.example",
        "experiment_spec": {"sequences": {"acme_1": {"aa_string": "M", "metadata": {"acme_x": 1}}}},
    }
    experiment = result(operations.experiments.get("e"), answer(body, words=ACME))
    assert experiment.provider_quote_url == "https://x.example"
    assert experiment.experiment_spec["sequences"] == body["experiment_spec"]["sequences"]


def test_a_modification_names_only_what_is_given_and_null_clears():
    assert json.loads(operations.experiments.modify("e").request.content()) == {}
    request = operations.experiments.modify(
        "e", target_id=None, name="n", antigen_concentrations=(1.0,)
    ).request
    assert json.loads(request.content()) == {"name": "n", "target_id": None, "antigen_concentrations": [1.0]}
    replaced = operations.experiments.modify(
        "e", sequences=[ProteinSequence(name="a", aa_string="M")]
    ).request
    assert json.loads(replaced.content())["sequences"] == [{"name": "a", "aa_string": "M", "control": False}]


def test_a_confirmation_always_has_a_body():
    assert operations.experiments.confirm_quote("e").request.content() == b"{}"
    named = operations.experiments.confirm_quote("e", purchase_order_number="PO-1").request
    assert json.loads(named.content()) == {"purchase_order_number": "PO-1"}
    assert operations.experiments.submit("e").request.content() is None


def test_ids_are_quoted_and_parameters_are_text():
    assert quote_segment("a/b?c d") == "a%2Fb%3Fc%20d"
    assert encode_query(a=True, b=None, c=3, d="x") == (("a", "true"), ("c", "3"), ("d", "x"))
    assert operations.targets.get("../whoami").request.path == "/targets/..%2Fwhoami"


def test_numbers_that_json_cannot_say_are_refused_before_sending():
    with pytest.raises(errors.InputError, match="nothing was sent"):
        operations.experiments.modify("e", parameters={"x": float("nan")}).request.content()


@pytest.mark.parametrize(
    "written", ["2026-11-21T12:00:00", "2026-11-21T12:00:00Z", "2026-11-21T13:00:00+01:00"]
)
def test_a_time_without_an_offset_is_utc(written):
    """Contract 1. A wait compares it with the time of this machine."""
    row = {"id": "e1", "code": "LAB-1", "status": "draft", "created_at": written}
    experiment = result(operations.experiments.get("e1"), answer(row))
    assert experiment.created_at == datetime(2026, 11, 21, 12, tzinfo=UTC)
