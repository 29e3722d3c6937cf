"""A decision that only a person can take, as one frozen record. Knows neither Prefect nor how it is asked."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Self

from pydantic import Field, model_validator

from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import usd

REJECT: Final = "reject"
UNNAMED: Final = "a person who gave no name"


class QuestionKind(StrEnum):
    """What is decided."""

    SPENDING = "spending"  # whether an amount may be spent
    ORDER_AGAIN = "order_again"  # whether an order with an unknown outcome is sent again
    WHICH_EXPERIMENT = "which_experiment"  # which experiment is the order
    PAYMENT_OUTCOME = "payment_outcome"  # whether a payment has moved money
    LEDGER = "ledger"  # whether an order is continued although its records contradict each other
    TERMS = "terms"  # whether a campaign goes on although its account is another one than at its start


class Fact(Model):
    """One line of what the person needs to know. Never a secret, an address that works without a token, or residues."""

    name: str = Field(min_length=1)
    value: str


class Choice(Model):
    """A decision that can be taken: one word, and what follows from it."""

    decision: str = Field(pattern=r"^[\w.:-]{1,100}$")
    effect: str


class Question(Model):
    """What is asked, why, the facts in their order, and the possible decisions, of which `reject` ends the run.

    `subject` is one line without markup, `amount_cents` the amount in US cents that is decided about, if any. With
    `second_person`, whoever has asked for the campaign may only reject it.

    >>> Question.of(
    ...     QuestionKind.WHICH_EXPERIMENT,
    ...     subject="Which experiment is c 1/2?",
    ...     reason="The answer to its order was lost.",
    ...     facts={"SIM-001-002": "its sequences are not shown"},
    ...     choices={"SIM-001-002": "it is this order", "none": "the run may order", "reject": "nothing is ordered"},
    ... ).decisions
    ('SIM-001-002', 'none', 'reject')
    """

    kind: QuestionKind
    subject: str = Field(min_length=1, max_length=500)
    reason: str
    facts: tuple[Fact, ...] = ()
    choices: tuple[Choice, ...] = Field(min_length=2)
    amount_cents: int | None = None
    second_person: bool = False

    @classmethod
    def of(
        cls,
        kind: QuestionKind,
        *,
        subject: str,
        reason: str,
        facts: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        choices: Mapping[str, str],
        amount_cents: int | None = None,
        second_person: bool = False,
    ) -> Self:
        """The record from plain mappings: facts by name, effects by decision."""
        return cls(
            kind=kind,
            subject=subject,
            reason=reason,
            facts=tuple(Fact(name=name, value=value) for name, value in dict(facts).items()),
            choices=tuple(Choice(decision=word, effect=effect) for word, effect in choices.items()),
            amount_cents=amount_cents,
            second_person=second_person,
        )

    @model_validator(mode="after")
    def _can_be_rejected(self) -> Self:
        if REJECT not in self.decisions or len(set(self.decisions)) != len(self.decisions):
            raise ValueError(f"the decisions of a question differ, and one of them is {REJECT}")
        return self

    @property
    def decisions(self) -> tuple[str, ...]:
        """The words of the choices, in their order."""
        return tuple(choice.decision for choice in self.choices)

    @property
    def digest(self) -> str:
        """Identifies the question: an answer counts only for exactly what was shown."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:20]

    @property
    def text(self) -> str:
        """The whole question in one line, for an error."""
        amount = () if self.amount_cents is None else (f"amount: {usd(self.amount_cents)}",)
        facts = "; ".join((*amount, *(f"{fact.name}: {fact.value}" for fact in self.facts)))
        return f"{self.subject} {self.reason}{f' ({facts})' if facts else ''}"
