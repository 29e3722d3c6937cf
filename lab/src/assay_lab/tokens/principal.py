"""Decides what a caller may do: the rights of its role, narrowed by every check of its token, which Biscuit evaluates."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from assay_lab.kernel.refusals import Refusal
from assay_lab.tokens import permissions
from assay_lab.tokens.encoding import AuthorizationError, AuthorizerBuilder, Opened
from assay_lab.vocabulary import PaymentMethod

logger = logging.getLogger("assay_lab")

# By the wall clock: 1 ms, the library's own, and 250 ms ran out on busy machines, and refused what is allowed.
_RUN_LIMIT: Final = timedelta(seconds=5)
_LIMIT_WORDS: Final = "execution limits"


@dataclass(frozen=True, slots=True)
class Grant:
    """A genuine, living token at one moment of lab time."""

    opened: Opened = field(repr=False)
    at: datetime

    def allows(
        self, action: str, resource: str, *, destructive: bool = False, method: str | None = None
    ) -> bool:
        """Whether every check of the token passes, regardless of the role; 500 when checking takes too long."""
        if self.opened.is_root:
            return True
        code, values = permissions.make_facts(
            action=action, resource=resource, destructive=destructive, lab_time=self.at, method=method
        )
        builder: Any = AuthorizerBuilder(f"{code} allow if true;", values)  # its stub lacks the limits
        limits = builder.limits()
        limits.max_time = _RUN_LIMIT
        builder.set_limits(limits)
        try:
            builder.build(self.opened.biscuit).authorize()
        except AuthorizationError as error:
            if _LIMIT_WORDS in str(error):
                logger.exception("a token's checks did not end in time")
                raise Refusal(500, "the token's restrictions could not be checked in time") from error
            return False
        return True

    def payment_methods(self) -> tuple[str, ...] | None:
        """The methods that the token may pay with, the preferred one first; None when it may use all."""
        # Paying is held to the token's payment policy here, and to its actions where the action happens.
        allowed = [method for method in PaymentMethod if self._may_pay(method)]
        order = self.opened.payment_policy
        if order is None:
            return None if len(allowed) == len(PaymentMethod) else tuple(allowed)
        return (*_in(order, allowed), *(method for method in allowed if method not in order))

    def _may_pay(self, method: str) -> bool:
        return any(
            self.allows(action, resource, method=method)
            for resource, action in (("experiment", "create"), ("invoice", "update"), ("quote", "update"))
        )


def _in(order: Iterable[str], allowed: list[PaymentMethod]) -> Iterable[str]:
    return dict.fromkeys(method for method in order if method in allowed)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller. `token_id` is its nearest recorded token, `expires_at` UTC text."""

    org_id: str
    org_name: str
    token_id: str
    role: str
    expires_at: str
    user_id: str | None = None
    root_token_id: str = ""
    grant: Grant | None = field(default=None, repr=False, compare=False)

    @property
    def permissions(self) -> list[str]:
        """Capabilities as `<resource>:<action>`: those of the role that the token's restrictions leave."""
        return [
            f"{resource}:{action}"
            for resource, action in permissions.of_role(self.role)
            if self.grant is None or self.grant.allows(action, resource)
        ]

    @property
    def payment_policy(self) -> tuple[str, ...] | None:
        """The token's own payment methods, the preferred one first; None without such a restriction."""
        return self.grant.payment_methods() if self.grant else None


# The caller of a path that needs no token.
ANONYMOUS: Final = Principal("", "", "", "viewer", "")
