"""Orders on machine rails from a running lab, over HTTP, and what its records say of them."""

from lab_support.core import spec
from prefect_assay.service.client import AssayClient


def open_invoice(lab, method):
    """The id of a new invoice on a rail."""
    body = {
        "experiment_spec": spec(),
        "name": "test",
        "auto_accept_quote": True,
        "payment": {"method": method},
    }
    with lab.http() as client:
        answer = client.post("/experiments", json=body)
        answer.raise_for_status()
        path = answer.json()["payment"]["pay_url"]
    return path.removeprefix("/api/v1/invoices/").removesuffix("/pay")


def client_of(lab):
    return AssayClient(lab.base_url, lab.token)


def booked(lab, invoice_id):
    """The lab's settlements of one invoice."""
    return [row for row in lab.settlements() if row["invoice_id"] == invoice_id]
