"""The limits (contract 8), each at its edge on both sides."""

from support.rules.record import MAKES, Rule

LIMITS: tuple[Rule, ...] = (
    Rule("8.limit", "a page has 1 to 100 rows"),
    Rule(
        "8.limit.default",
        "a page has 50 rows by default",
        client="it leaves the default to the service",
    ),
    Rule("8.offset", "pages begin at 0 and never before"),
    Rule("8.replicates", "1 to 5 replicates"),
    Rule(
        "8.replicates.default",
        "3 replicates by default",
        client="it leaves the default to the service",
    ),
    Rule("8.replicates.binning", "no replicates for binning"),
    Rule("8.binning", "4 to 28 sequences in multiples of 4"),
    Rule(
        "8.concentrations.default",
        "five concentrations by default",
        client="it leaves the default to the service",
    ),
    Rule("8.sort", "at most 8 columns"),
    Rule("8.secret", "at least 32 characters"),
    Rule("8.retries", "at most 3 retries with growing pauses", client="the service sends"),
    Rule("8.expiry", "tokens live for 7, 30 or 90 days or a year", client="tokens are made in the portal"),
    Rule("8.expiry.minted", "a minted token lives for 90 days by default", client=MAKES),
    Rule("8.processing", "the laboratory takes 5 to 15 days", client=MAKES),
    Rule("8.cents", "prices are whole cents without VAT", client="it reads prices"),
)
