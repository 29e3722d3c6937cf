"""Questions to a person in the Prefect UI: about spending, and about payments whose outcome is unknown.

A question is a suspended run with a form. This package must not know what follows from an answer: it returns the
decision, or raises. Import the modules: `spending`, `uncertain_payment`, and `questions` for what both share.
"""

from prefect_assay.approvals.questions import answer_expired, unanswered
from prefect_assay.approvals.spending import Approval, approve_spending
from prefect_assay.approvals.uncertain_payment import answer_paid, ask_about_payment, payment_decision

__all__ = [
    "Approval",
    "answer_expired",
    "answer_paid",
    "approve_spending",
    "ask_about_payment",
    "payment_decision",
    "unanswered",
]
