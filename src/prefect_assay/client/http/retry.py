"""When to send a repeatable request again, and how long to wait before. Pure: the faces do the sleeping.

Only requests that change nothing are repeated (GET, and the cost estimate). A POST never is: the service has
no idempotency key, so a repeat could order or pay twice.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from prefect_assay.client.http.failures import retry_after
from prefect_assay.client.http.request import Answer, Request

REPEATED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off with full jitter, bounded in number and in length.

    Attributes:
        repeats: at most this many repeats after the first try.
        first: seconds that the first wait is drawn from; doubled for each further one.
        longest: upper bound of a wait in seconds.
        patience: a longer `Retry-After` is not waited for here; the error carries it to the caller.
        draw: a number from 0 to 1.
    """

    repeats: int = 4
    first: float = 0.5
    longest: float = 20.0
    patience: float = 60.0
    draw: Callable[[], float] = field(default=random.random)

    def delay(self, request: Request, tried: int, answer: Answer | None) -> float | None:
        """Seconds to wait before the next try, or None when this was the last one.

        Args:
            request: what was sent.
            tried: how many times it has been sent so far.
            answer: what came back; None when nothing did.
        """
        if not request.repeatable or tried > self.repeats:
            return None
        if answer is not None and answer.status not in REPEATED:
            return None
        drawn = self.draw() * min(self.longest, self.first * 2.0 ** (tried - 1))
        asked = retry_after(answer) if answer is not None else None
        if asked is None:
            return drawn
        # Above what is asked for, never below; spread, so that many runs do not come back at once.
        return asked + drawn if asked <= self.patience else None
