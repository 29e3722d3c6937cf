"""What a hostile or broken service can make the client take in."""

import tracemalloc

import pytest

from prefect_assay import errors
from prefect_assay.service.client.http import exchange, pagination
from support.client import Caller
from support.services.fault_server import gzip_bomb, reply

BOMB = gzip_bomb(512)
CREDENTIAL = {"PAYMENT-SIGNATURE": "credential-canary"}


@pytest.fixture
def peak():
    """The most memory that was taken since, in MiB."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()


def packed(status=200, **headers):
    return reply(status, BOMB, content_encoding="gzip", **headers)


@pytest.mark.parametrize("status", [200, 403, 503])
def test_an_answer_is_counted_while_it_is_unpacked(call, server, peak, status):
    server.will(packed(status))
    with pytest.raises(errors.UnexpectedAnswer, match=r"GET /whoami.*larger than 67,108,864 bytes"):
        call("tokens.whoami")
    assert peak() < 256
    assert len(server.seen) == 1  # asking again would bring it again


def test_an_act_with_such_an_answer_has_an_unknown_outcome(call, server):
    server.will(packed(), packed(402))
    with pytest.raises(errors.OutcomeUnknown, match="larger than"):
        call("experiments.submit", "e1")
    with pytest.raises(errors.PaymentOutcomeUnknown, match="larger than"):
        call("invoices.pay", "i1", CREDENTIAL)


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "zstd"])
def test_an_unrequested_content_encoding_is_not_unpacked(call, server, coding):
    server.will(reply(200, BOMB, content_encoding=coding))
    with pytest.raises(errors.UnexpectedAnswer, match="not asked for"):
        call("tokens.whoami")
    assert server.seen[0].headers["accept-encoding"] == "gzip, deflate"


def test_a_file_has_its_own_limit_which_the_user_sets(server, peak):
    call = Caller(server.base_url, {"max_download": 100_000})
    server.will(reply(200, bytes(100_000)), packed(), reply(200, bytes(100_001)))
    assert sum(map(len, call("documents.download", "/file"))) == 100_000
    for _ in range(2):
        with pytest.raises(errors.UnexpectedAnswer, match=r"larger than 100,000 bytes.*max_package_gb"):
            call("documents.download", "/file")
    assert peak() < 256


def test_a_pdf_is_held_in_memory_and_has_the_limit_of_an_answer(call, server):
    server.will(reply(200, b"%PDF-", content_length=exchange.ANSWER_BYTES_MAX + 1))
    with pytest.raises(errors.UnexpectedAnswer, match="larger than"):
        call("experiments.download_quote_pdf", "e1")


def test_a_list_without_end_is_an_unexpected_answer(call, server, monkeypatch):
    monkeypatch.setattr(pagination, "REQUESTS_MAX", 5)
    tokens = [
        {"id": f"t{n}", "name": "n", "kind": "root", "created_at": "2026-11-21T12:00:00Z"} for n in range(2)
    ]

    def endless(connection, request):
        rows = [{**row, "id": f"{row['id']}-{len(server.seen)}"} for row in tokens]
        reply(200, {"items": rows, "total": 10**9, "count": 2, "offset": 0})(connection, request)

    server.will(*[endless] * 20)
    with pytest.raises(errors.UnexpectedAnswer, match=r"/tokens.*not ended after 5 pages"):
        call("tokens.iterate", page_size=2)
    assert len(server.seen) == 5
