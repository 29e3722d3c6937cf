"""The rows of the error table (contract 7), each with every endpoint that it names."""

from support.rules.record import EXISTS, RIGHTS, STATE, Rule

_JSON = "it always sends JSON where a body is needed"

ERRORS: tuple[Rule, ...] = (
    Rule(
        "7.body",
        "an error has a message and a request id, also in the header",
        client="it reads errors",
    ),
    Rule("7.400.parameter", "list parameters off their range or form"),
    Rule(
        "7.400.type_filter",
        "an unknown experiment_type as a filter",
        client="a service may know more types than this client",
    ),
    Rule("7.400.target_id", "a malformed target_id"),
    Rule("7.400.duplicate", "a duplicate sequence, in create, change and add"),
    Rule("7.400.inapplicable", "a field that the type does not take"),
    Rule("7.400.malformed", "a body that is no JSON object", client=_JSON),
    Rule("7.400.conflict", "two payment selectors that disagree, with their code"),
    Rule(
        "7.400.auto", "auto_accept_quote where no quote can be made", client="only the service knows prices"
    ),
    Rule("7.400.invoice", "the invoice of an unknown or foreign experiment", client=EXISTS),
    Rule(
        "7.401",
        "a missing, unknown or foreign token, at every endpoint that takes one",
        client="only the service knows tokens",
    ),
    Rule("7.401.shape", "a token that a header cannot hold"),
    Rule(
        "7.402",
        "the pay path of a machine rail answers with a challenge",
        client="the guard is in payments",
    ),
    Rule("7.403", "a viewer's token at every endpoint that writes", client=RIGHTS),
    Rule("7.404.target", "creating with a target that is not in the catalog", client=EXISTS),
    Rule("7.404.absent", "ids that do not exist, at every endpoint with an id", client=EXISTS),
    Rule("7.404.foreign", "another organisation's ids, at every endpoint with an id", client=EXISTS),
    Rule("7.404.dots", "an id that would change the path"),
    Rule("7.404.quote", "the quote before it is made", client=STATE),
    Rule("7.404.invoice", "the invoice before the quote is accepted", client=STATE),
    Rule("7.409.modify", "a change after draft and outside review", client=STATE),
    Rule("7.409.sequences", "sequences for what is no draft", client=STATE),
    Rule("7.409.email", "minting for a known e-mail", client=EXISTS),
    Rule("7.415", "no body or no JSON, at every endpoint that needs one", client=_JSON),
    Rule("7.422.letters", "letters that are no amino acids"),
    Rule("7.422.estimate", "an estimate with an unknown target or before the first prices", client=EXISTS),
    Rule("7.429", "too many requests, with Retry-After", client="only the service counts"),
    Rule("7.500", "an internal error", client="not predictable"),
)
