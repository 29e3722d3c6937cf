"""Who calls, and what an organisation manages for itself (contract 4.6, service shapes)."""

from typing import Final

from prefect_assay.lab.account import handlers as access
from prefect_assay.lab.account import info as account
from prefect_assay.lab.requests.schemas import SubmitFeedback
from prefect_assay.lab.routing.route import Route, shown
from prefect_assay.lab.shapes.identity import DatabaseAway, DatabaseHealth, Health, Identity
from prefect_assay.lab.shapes.info import FeedbackReceipt

IDENTITY: Final = (shown("/whoami", access.whoami, "Who the token is", "identity", Identity),)

INFO: Final = (
    Route(
        "GET",
        "/info/health",
        account.health,
        "Health, without a token",
        "read",
        "identity",
        answers={200: Health},
        open=True,
    ),
    Route(
        "GET",
        "/info/health-db",
        account.health_of_database,
        "Health of the database, without a token; 503 when it does not answer",
        "read",
        "identity",
        answers={200: DatabaseHealth},
        open=True,
        refuses={503: DatabaseAway},
    ),
    Route(
        "POST",
        "/feedback/submit",
        account.feedback,
        "Send feedback",
        "create",
        "feedback",
        SubmitFeedback,
        answers={201: FeedbackReceipt},
    ),
)
