"""The books are those of the organisation behind the token; an answer that is not the service's opens none."""

from types import SimpleNamespace

import httpx
import pytest

from prefect_assay.blocks import LocalArchive
from prefect_assay.blocks.order_books import open_books
from prefect_assay.client import AssayClient
from prefect_assay.errors import ServiceUnavailable

URL = "https://lab.example.org"


def told(respond, path):
    """The books behind a service that answers `GET /whoami` so."""
    client = AssayClient(URL, "t", transport=httpx.MockTransport(respond), retries=0)
    credentials = SimpleNamespace(get_client=lambda: client, base_url=URL)
    return open_books(credentials, LocalArchive(root=str(path)))


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, text="404 page not found"),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(200, json={"status": "maintenance"}),
    ],
    ids=["proxy", "framework", "another object"],
)
def test_an_answer_that_is_not_the_services_opens_no_books(tmp_path, answer):
    """In other books, an order that was sent and a card that was charged are unknown."""
    with pytest.raises(ServiceUnavailable, match="whoami"):
        told(lambda _: answer, tmp_path)


@pytest.mark.parametrize(
    ("answer", "account"),
    [
        (httpx.Response(404, json={"error": "no such endpoint"}), URL),
        (httpx.Response(200, json={"user_id": "u", "organizations": []}), URL),
        (
            httpx.Response(
                200,
                json={
                    "organizations": [{"id": "o1", "name": "A"}, {"id": "o2", "name": "B", "active": True}]
                },
            ),
            "o2",
        ),
    ],
    ids=["without the endpoint", "without an organisation", "with organisations"],
)
def test_the_books_are_those_of_the_tokens_organisation(tmp_path, answer, account):
    assert told(lambda _: answer, tmp_path).account == account
