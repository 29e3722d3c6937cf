"""Small calls around the account: health and feedback (service shapes, Tokens and identity)."""

import secrets
import sqlite3

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.requests import validation
from prefect_assay.lab.requests.core import Answer, Call
from prefect_assay.lab.requests.schemas import SubmitFeedback


def health(_call: Call) -> Answer:
    """GET /info/health: the lab answers."""
    return Answer({"status": "ok"})


def health_of_database(call: Call) -> Answer:
    """GET /info/health-db: 200 when the database answers, 503 when it does not."""
    try:
        with call.lab.store.transaction() as db:
            db.one("SELECT count(*) AS n FROM organizations")
    except sqlite3.Error as error:
        raise Refusal(503, "the database does not answer", extra={"db": "unavailable"}) from error
    return Answer({"status": "ok", "db": "ok"})


def feedback(call: Call) -> Answer:
    """POST /feedback/submit. Every submission is kept, also one about the same request."""
    wanted = validation.read(SubmitFeedback, call.json())
    reference = f"fb_{secrets.token_hex(8)}"
    with call.lab.store.transaction() as db:
        db.insert(
            "feedback",
            {
                "id": reference,
                "org_id": call.who.org_id,
                "created_at": call.now(),
                "content": wanted.model_dump(mode="json"),
            },
        )
    return Answer({"reference": reference, "message": "thank you for your feedback"}, 201)
