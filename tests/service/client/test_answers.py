"""An answer that names something else than was asked for is one that was not received."""

import json

import pytest

from prefect_assay import errors
from prefect_assay.service.client.http.exchange import RetryPolicy
from prefect_assay.service.client.http.failures import result
from prefect_assay.service.client.http.request import Answer
from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.sequences import ProteinSequence
from support.client import first_operation, operations
from support.services.fault_server import reply

E1 = "2f1a3c55-0000-4000-8000-00000000abcd"
E2 = "2f1a3c55-0000-4000-8000-00000000ffff"
RECORD = {"code": "X-1", "status": "in_queue"}
ROW = {"id": "r-1", "result_type": "affinity"}


def read(operation, body):
    return result(operation, Answer(status=200, content=json.dumps(body).encode()))


READS = [
    (operations.experiments.get(E1), {**RECORD, "id": E2}),
    (operations.experiments.get(E1), {**RECORD, "id": E1, "experiment_id": E2}),
    (operations.experiments.get_quote(E1), {"experiment_id": E2, "status": "open"}),
    (operations.experiments.get_invoice(E1), {"experiment_id": E2, "status": "open"}),
    (operations.quotes.get("q-1"), {"id": "q-2"}),
    (operations.invoices.get("inv_1"), {"id": "inv_2", "status": "paid"}),
    (
        operations.invoices.get("inv_1"),
        {"id": E2, "provider_invoice_id": "INV_1"},
    ),  # exact text, if it is not a UUID
    (operations.results.get("r-1"), {**ROW, "id": "r-2"}),
    (
        first_operation(lambda client: client.experiments.iterate_results(E1)),
        {"items": [{**ROW, "experiment_id": E1}, {**ROW, "experiment_id": E2}]},
    ),
    (operations.sequences.get("s-1"), {"id": "s-2"}),
    (
        first_operation(lambda client: client.experiments.iterate_sequences(E1)),
        [{"id": "s-1", "experiment_id": E2}],
    ),
    (
        first_operation(lambda client: client.experiments.iterate_sequences(E1)),
        {"items": [{"id": "s-1", "experiment": {"experiment_id": E2}}]},
    ),
    (operations.sequences.list(experiment_id=E1), {"items": [{"id": "s-1", "experiment_id": E2}]}),
    (
        first_operation(lambda client: client.experiments.iterate_updates(E1)),
        {"items": [{"id": "u-1", "experiment_id": E2}]},
    ),
    (operations.updates.list(experiment_id=E1), {"items": [{"id": "u-1", "experiment_id": E2}]}),
    (operations.targets.get(E1), {"id": E2, "name": "EGFR"}),
]


@pytest.mark.parametrize(("operation", "body"), READS)
def test_a_read_about_something_else_is_an_error_that_may_pass(operation, body):
    with pytest.raises(errors.MixedAnswer, match=r"was asked for\. It is not used") as caught:
        read(operation, body)
    assert caught.value.retriable
    assert str(operation.request) in str(caught.value)


ACTS = [
    (operations.experiments.submit(E1), {"experiment_id": E2}),
    (operations.experiments.modify(E1, name="n"), {"id": E2, "updated": True}),
    (operations.experiments.confirm_quote(E1), {"id": "q-1", "status": "accepted", "experiment_id": E2}),
    (operations.quotes.confirm("q-1"), {"id": "q-2", "status": "accepted"}),
    (operations.quotes.reject("q-1", "price"), {"id": "q-2", "status": "rejected"}),
    (
        operations.sequences.add("X-1", [ProteinSequence(name="a", aa_string="ACD")]),
        {"added_count": 1, "experiment_code": "X-2"},
    ),
]


@pytest.mark.parametrize(("operation", "body"), ACTS)
def test_an_act_that_is_answered_about_something_else_has_an_unknown_outcome(operation, body):
    with pytest.raises(errors.OutcomeUnknown, match="whether it took effect is not known"):
        read(operation, body)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        (operations.experiments.get(E1), {**RECORD, "id": E1.upper()}),
        (operations.experiments.get(E1.upper()), {**RECORD, "id": E1}),
        (operations.experiments.get_quote(E1), {"status": "open"}),
        (operations.experiments.get_invoice(E1.upper()), {"experiment_id": E1}),
        (operations.invoices.get("in_1"), {"id": "inv_1", "provider_invoice_id": "in_1"}),
        (operations.invoices.get(E1.upper()), {"id": E1}),
        (
            first_operation(lambda client: client.experiments.iterate_results(E1)),
            {"items": [{**ROW, "experiment_id": E1.upper()}, ROW]},
        ),
        (operations.experiments.submit(E1), {"status": "waiting_for_confirmation"}),
        (operations.experiments.modify(E1, name="n"), {"updated": True}),
    ],
)
def test_another_letter_case_or_no_id_contradicts_nothing(operation, body):
    read(operation, body)


def test_a_uuid_has_one_form_and_any_other_id_stays_as_it_is():
    assert normalize_id(E1.upper()) == E1
    for other in (
        "in_AbC",
        f"{{{E1.upper()}}}",
        f"urn:uuid:{E1.upper()}",
        E1.upper().replace("-", ""),
        "é".upper(),
    ):
        assert normalize_id(other) == other


def test_an_answer_that_is_mixed_up_once_is_asked_for_again(call, server):
    server.will(reply(200, {**RECORD, "id": E2}), reply(200, {**RECORD, "id": E1}))
    assert call("experiments.get", E1).id == E1
    assert len(server.seen) == 2


MIXED = {
    "experiment": {**RECORD, "id": E2},
    "sequences": {"items": [{"id": "s", "experiment": {"id": E2}}]},
    "quote": {"quote": {"experiment_id": E2}},
    "invoice": {"experiment_id": E2, "status": "paid"},
    "updates": [{"id": "u", "experiment_id": E2}],
    "results": {"data": {"items": [{**ROW, "experiment_id": E2, "summary": []}]}},
}


@pytest.mark.parametrize("name", MIXED)
def test_no_document_of_another_experiment_is_handed_to_an_archive(call, server, name):
    answers = {
        **{one: reply(404, {"error": "no"}) for one in MIXED},
        "experiment": reply(200, {**RECORD, "id": E1}),
    }
    before = list(MIXED)[: list(MIXED).index(name)]
    server.will(*[answers[one] for one in before], *[reply(200, MIXED[name])] * (1 + RetryPolicy().repeats))
    with pytest.raises(errors.MixedAnswer, match="names experiment"):
        call("documents.iterate", E1)


def test_what_a_user_or_a_measurement_calls_an_experiment_id_is_no_id_of_the_answer(call, server):
    entry = {"sequence": {"name": "d1", "metadata": {"experiment_id": E2}}, "experiment_id": "batch 7"}
    rows = {"items": [{**ROW, "experiment_id": E1, "summary": [entry], "metadata": {"experiment_id": E2}}]}
    absent = reply(404, {"error": "no"})
    server.will(reply(200, {**RECORD, "id": E1}), absent, absent, absent, absent, reply(200, rows))
    assert [document.name for document in call("documents.iterate", E1)] == [
        "experiment.json",
        "results-0001.json",
    ]
