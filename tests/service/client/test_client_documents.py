"""What the archive gets: every body byte for byte; and the search for an invoice."""

import json

import pytest

from prefect_assay import errors
from support.services.fault_server import reply

ODD = b'{ "id":"e1",\n"code" : "c\\u002d1", "x": 1.0e0 }\n'


def listed(count, start=0, total=9):
    return {"items": [{"id": f"r{n}"} for n in range(start, start + count)], "total": total, "count": count}


def test_every_body_is_kept_as_it_came(call, server):
    server.will(
        reply(200, ODD, content_type="application/json; charset=utf-8"),
        reply(200, listed(100)),
        reply(200, listed(3, 100)),
        reply(200, {"experiment_id": "e1", "status": "accepted"}),
        reply(404, {"error": "no invoice yet"}),
        reply(404, {"error": "unknown path"}),
        reply(200, []),
    )
    documents = call("documents.iterate", "e1")
    assert [d.name for d in documents] == [
        "experiment.json",
        "sequences-0001.json",
        "sequences-0002.json",
        "quote.json",
        "results-0001.json",
    ]
    assert documents[0].body == ODD
    assert documents[0].content_type == "application/json"
    assert json.loads(documents[2].body)["items"][0] == {"id": "r100"}
    assert [r.target for r in server.seen] == [
        "/api/v1/experiments/e1",
        "/api/v1/experiments/e1/sequences?limit=100&offset=0",
        "/api/v1/experiments/e1/sequences?limit=100&offset=100",
        "/api/v1/experiments/e1/quote",
        "/api/v1/experiments/e1/invoice",
        "/api/v1/experiments/e1/updates?limit=100&offset=0",
        "/api/v1/experiments/e1/results?limit=100&offset=0",
    ]


def test_an_empty_last_page_is_no_document(call, server):
    absent = reply(404, {"error": "no"})
    server.will(
        reply(200, ODD), reply(200, listed(100)), reply(200, listed(0)), absent, absent, absent, absent
    )
    assert [d.name for d in call("documents.iterate", "e1")] == ["experiment.json", "sequences-0001.json"]


ABSENT = reply(404, {"error": "no"})


def archived(call):
    """The pages of sequences, and the requests for them."""
    return [d.name for d in call("documents.iterate", "e1") if d.name.startswith("sequences-")]


def asked(server):
    return [r.target.partition("offset=")[2] for r in server.seen if "/sequences" in r.target]


def test_a_list_on_shorter_pages_is_kept_to_its_total(call, server):
    pages = [reply(200, listed(40, start, total=103)) for start in (0, 40)]
    server.will(reply(200, ODD), *pages, reply(200, listed(23, 80, total=103)), *[ABSENT] * 4)
    assert archived(call) == [f"sequences-000{page}.json" for page in (1, 2, 3)]
    assert asked(server) == ["0", "40", "80"]


def test_a_total_that_promises_too_much_ends_at_the_empty_page(call, server):
    server.will(
        reply(200, ODD), reply(200, listed(40, total=50)), reply(200, listed(0, total=50)), *[ABSENT] * 4
    )
    assert archived(call) == ["sequences-0001.json"]
    server.will(reply(200, ODD), reply(200, listed(0, total=50)), *[ABSENT] * 4)
    assert archived(call) == ["sequences-0001.json"]


@pytest.mark.parametrize(("count", "total"), [(40, 103), (100, 250)])
def test_a_service_that_ignores_the_offset_does_not_fill_the_archive(call, server, count, total):
    same = [{**listed(count, total=total), "offset": offset} for offset in (0, count)]
    server.will(reply(200, ODD), *[reply(200, body) for body in same], *[ABSENT] * 4)
    assert archived(call) == ["sequences-0001.json"]


@pytest.mark.parametrize("total", [None, "many", True])
def test_a_total_that_is_no_number_does_not_count(call, server, total):
    server.will(reply(200, ODD), reply(200, listed(3, total=total)), *[ABSENT] * 4)
    assert archived(call) == ["sequences-0001.json"]


def test_an_experiment_that_does_not_exist_is_no_empty_archive(call, server):
    server.will(reply(404, {"error": "no"}))
    with pytest.raises(errors.NotFound):
        call("documents.iterate", "e1")


GATEWAY = b"<html>404 Not Found</html>"


ROUTERS = [GATEWAY, b"", b'{"message": "no route matched"}', b'{"detail": "Not Found"}']
WHOLE = ["experiment", "sequences", "quote", "invoice", "updates", "results"]


def whole_but(name, body):
    """Answers to a walk, with a 404 in one place."""
    answers = whole()
    answers[WHOLE.index(name)] = reply(404, body)
    return answers


def whole():
    """Answers to a walk: the record, and a row of everything else."""
    return [reply(200, ODD), *[reply(200, listed(1, total=1)) for _ in WHOLE[1:]]]


@pytest.mark.parametrize("body", ROUTERS)
@pytest.mark.parametrize("name", ["results"])
def test_what_a_gateway_does_not_find_is_not_left_out(call, server, name, body):
    server.will(*whole_but(name, body))
    with pytest.raises(errors.UnexpectedAnswer, match=f"{name}: the service answered 404"):
        call("documents.iterate", "e1")


@pytest.mark.parametrize("body", ROUTERS)
@pytest.mark.parametrize("name", ["sequences", "quote", "invoice", "updates"])
def test_a_note_takes_the_place_of_an_answer_that_results_do_not_need(call, server, name, body):
    server.will(*whole_but(name, body))
    documents = {document.name: document for document in call("documents.iterate", "e1")}
    note = documents.pop(f"{name}.absent.json")
    assert (note.absent, json.loads(note.body)) == (True, {"status_code": 404})
    assert len(documents) == len(WHOLE) - 1
    assert not any(document.absent or document.name.startswith(name) for document in documents.values())


@pytest.mark.parametrize(
    "answer", [reply(403, {"error": "no access"}), reply(410, b""), reply(204, b""), reply(200, GATEWAY)]
)
@pytest.mark.parametrize("name", ["sequences", "quote", "invoice", "updates"])
def test_results_do_not_wait_for_what_the_service_refuses_beside_them(call, server, name, answer):
    answers = whole()
    answers[WHOLE.index(name)] = answer
    server.will(*answers)
    documents = {document.name: document.absent for document in call("documents.iterate", "e1")}
    assert documents[f"{name}.absent.json"]
    assert not documents["results-0001.json"]


@pytest.mark.parametrize("answer", [reply(202, {"status": "processing"}), reply(204, b""), reply(200, b" ")])
def test_results_that_are_not_there_yet_are_no_document(call, server, answer):
    server.will(*whole()[:-1], answer)
    assert "results-0001.json" not in [document.name for document in call("documents.iterate", "e1")]


@pytest.mark.parametrize("body", [b"name,kd\nd1,1e-9\n", b'{"name": "d1"}\n{"name": "d2"}\n'])
def test_results_that_are_no_json_are_kept_as_they_came(call, server, body):
    server.will(*whole()[:-1], reply(200, body, content_type="text/csv"))
    *_, document = call("documents.iterate", "e1")
    assert (document.name, document.body) == ("results-0001.txt", body)


def pages(*answers):
    return [*whole()[:-1], *answers]


@pytest.mark.parametrize(
    ("body", "second"),
    [
        ({"items": [{"id": "r1"}], "total": 2}, "limit=100&offset=1"),
        ({"results": [{"id": "r1"}], "next_cursor": "r1"}, "limit=100&cursor=r1"),
    ],
)
def test_results_on_pages_are_kept_to_the_last(call, server, body, second):
    server.will(*pages(reply(200, body), reply(200, {"items": [{"id": "r2"}]})))
    names = [document.name for document in call("documents.iterate", "e1")]
    assert names[-2:] == ["results-0001.json", "results-0002.json"]
    assert server.seen[-1].target == f"/api/v1/experiments/e1/results?{second}"


@pytest.mark.parametrize("body", [GATEWAY, {"error": "no"}])
def test_a_list_that_breaks_off_is_not_archived_as_a_whole(call, server, body):
    server.will(reply(200, ODD), reply(200, listed(100, total=103)), reply(404, body))
    with pytest.raises(errors.UnexpectedAnswer):
        call("documents.iterate", "e1")


def test_a_page_of_a_proxy_is_no_document(call, server):
    server.will(reply(200, b"<html>please log in</html>"))
    with pytest.raises(errors.UnexpectedAnswer):
        call("documents.iterate", "e1")


def invoices(*rows):
    return reply(200, {"items": [{"id": i, "experiment_id": e, "status": s} for i, e, s in rows]})


def test_the_invoice_of_an_experiment_is_found_by_filter(call, server):
    server.will(invoices(("i3", "e1", "void"), ("i2", "e1", "paid"), ("i1", "e1", "void")))
    assert call("invoices.find_for_experiment", "e1").id == "i2"
    assert "filter=eq%28experiment_id%2Ce1%29" in server.seen[0].target


def test_an_ignored_filter_finds_no_other_experiments_invoice(call, server):
    server.will(invoices(("i2", "e2", "open"), ("i3", None, "open")))
    assert call("invoices.find_for_experiment", "e1") is None


@pytest.mark.parametrize("status", [400, 422])
def test_a_filter_that_is_refused_means_reading_the_list(call, server, status):
    server.will(
        reply(status, {"error": "unknown column"}), invoices(("i2", "e2", "open"), ("i1", "e1", "open"))
    )
    assert call("invoices.find_for_experiment", "e1").id == "i1"
    assert "filter" not in server.seen[1].target


def test_a_list_that_is_refused_is_an_error(call, server):
    server.will(reply(400, {"error": "no"}), reply(400, {"error": "no"}))
    with pytest.raises(errors.RequestRefused):
        call("invoices.find_for_experiment", "e1")


@pytest.mark.parametrize("status", [404, 405])
def test_without_a_list_of_invoices_none_is_found(call, server, status):
    server.will(reply(status, {"error": "no such path"}))
    assert call("invoices.find_for_experiment", "e1") is None
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [404, 405])
def test_the_refusal_of_a_gateway_does_not_say_that_there_is_no_list(call, server, status):
    server.will(reply(status, GATEWAY))
    with pytest.raises(errors.UnexpectedAnswer, match=f"the service answered {status}"):
        call("invoices.find_for_experiment", "e1")


def test_a_list_of_invoices_that_breaks_off_is_an_error(call, server):
    first = [{"id": f"i{n}", "experiment_id": "e2", "status": "open"} for n in range(100)]
    server.will(reply(200, {"items": first, "total": 150}), reply(404, {"error": "no"}))
    with pytest.raises(errors.UnexpectedAnswer):
        call("invoices.find_for_experiment", "e1")
    assert len(server.seen) == 2


def test_a_void_invoice_is_found_if_there_is_no_other(call, server):
    server.will(invoices(("i2", "e1", "void"), ("i1", "e1", "void")))
    assert call("invoices.find_for_experiment", "e1").id == "i2"
    server.will(invoices())
    assert call("invoices.find_for_experiment", "e1") is None
