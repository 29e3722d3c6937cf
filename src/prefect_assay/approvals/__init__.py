"""Questions to a person in the Prefect UI: about spending, a loop's next round, and payments with an unknown outcome.

A question is a suspended run with a form. This package must not know what follows from an answer: it returns the
decision, or raises. Import the modules: `spending`, `rounds`, `uncertain_payment`, and `questions` for what they share.
"""

from prefect_assay.approvals.questions import answer_expired, unanswered
from prefect_assay.approvals.rounds import approve_round
from prefect_assay.approvals.spending import Approval, approve_spending
from prefect_assay.approvals.uncertain_payment import answer_paid, ask_about_payment, payment_decision
from prefect_assay.approvals.which_order import which_order

__all__ = [
    "Approval",
    "answer_expired",
    "answer_paid",
    "approve_round",
    "approve_spending",
    "ask_about_payment",
    "payment_decision",
    "unanswered",
    "which_order",
]
