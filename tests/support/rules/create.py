"""Rules for creating, estimating and for the wire of both (contract 2.2, 2.3 and 4.2)."""

from support.rules.record import EXISTS, MAKES, MONEY, STATE, Rule

CREATE: tuple[Rule, ...] = (
    Rule("4.1.filter", "filters and sorts are expressions over the list's own fields"),
    Rule("2.2.type", "the experiment type is one of seven"),
    Rule("2.2.method", "affinity and screening need a method, every other type refuses one"),
    Rule("2.2.target", "binding types need the uuid of a target, others refuse one"),
    Rule("2.2.replicates", "binning refuses replicates"),
    Rule("2.2.concentrations", "only affinity takes concentrations"),
    Rule("2.2.sequences", "at least one sequence"),
    Rule("2.2.all", "several findings come in one answer"),
    Rule("2.3.letters", "twenty letters in either case, chains joined by colons"),
    Rule("2.3.duplicates", "same residues and tag location are duplicates, Fabs exempt"),
    Rule("2.3.metadata", "an ScFv needs VH and VL, a FAB its framework regions"),
    Rule("4.2.create.fields", "a specification and a name are needed, unknown fields are refused"),
    Rule("4.2.create.url", "webhook_url is an HTTPS address"),
    Rule("4.2.create.secret", "webhook_secret is written and never read", client=MAKES),
    Rule("4.2.create.method", "payment.method is one of the two machine rails"),
    Rule("4.2.create.pinned", "the rail of an experiment stays for its life", client=STATE),
    Rule(
        "4.2.create.draft",
        "without skip_draft it is a draft, with it it waits for confirmation",
        client=MAKES,
    ),
    Rule(
        "4.2.create.auto",
        "auto_accept_quote implies skip_draft, and needs a target with a full price",
        client=MONEY,
    ),
    Rule("4.2.create.1", "orders through the API share the organisation's project", client=MAKES),
    Rule("4.2.create.2.header", "the selector in the body equals the one in the header"),
    Rule("4.2.create.2.conflict", "two selectors that disagree are 400 with a code"),
    Rule("4.2.create.2.policy", "without a selector the caller's payment policy decides", client=MONEY),
    Rule("4.2.create.3", "accepted at once without a machine rail: 201 with a draft invoice", client=MAKES),
    Rule(
        "4.2.create.4",
        "accepted at once on a machine rail: 200, an open invoice, nothing settled",
        client=MAKES,
    ),
    Rule(
        "4.2.create.5", "an order that fails after its invoice voids it, and can be tried again", client=MAKES
    ),
    Rule("4.2.create.6", "the error after a partial creation names experiment and invoice", client=MAKES),
    Rule(
        "4.2.estimate.read",
        "reading permission is enough for an estimate",
        client="it allows, and never refuses",
    ),
    Rule("4.2.estimate.nothing", "an estimate creates nothing", client=MAKES),
    Rule("4.2.estimate.date", "priced by the current date, and not before the first prices", client=MONEY),
    Rule("4.2.estimate.incomplete", "no self-service price: incomplete, and no error", client=MONEY),
    Rule("4.2.estimate.unknown", "an unknown target is 422", client=EXISTS),
    Rule("4.2.estimate.schema", "a field of the wrong shape is 422, a broken rule 400"),
)
