"""One record of the register of rules."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the service.

    Attributes:
        id: section of the contract, topic and number, such as `4.2.create.2`; or `shapes`, where the contract is silent.
        says: the rule.
        client: why the client cannot hold it before anything is sent; empty where it does.
        lab: why the lab cannot hold it; empty where it does.
    """

    id: str
    says: str
    client: str = ""
    lab: str = ""


STATE = "only the service knows the state of the experiment"
MONEY = "only the service knows prices and policies"
RIGHTS = "only the service knows what a token may do"
MAKES = "the client only asks; the service does it"
EXISTS = "only the service knows what exists"
