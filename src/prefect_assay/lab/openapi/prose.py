"""The document's texts for people."""

from typing import Final

TITLE: Final = "Protein characterization service (local lab)"

BEARER: Final = (
    "A capability token of the shape `<prefix>_<slug><encoded>`. It belongs to an organisation and a role, and"
    " may carry further restrictions."
)

DESCRIPTION: Final = """\
Order measurements of proteins: create an experiment, submit it, accept and pay the quote, wait for the
laboratory, fetch the results.

**Conventions.** Bodies are JSON. Times are UTC in RFC 3339. Money is integer US cents and excludes VAT. Every
answer carries `x-request-id`; error bodies repeat it as `request_id`.

**Lists** answer `items`, `total`, `count` and `offset`; fetch pages until fewer than `limit` items return.
Unknown query parameters are ignored.

**Filters** are expressions: `eq`, `neq`, `gt`, `lt`, `gte`, `lte`, `contains(field,value)`,
`between(field,low,high)`, `in(field,value,...)`, `is_null(field)`, `is_not_null(field)`, joined by `and(...)`,
`or(...)`, `not(...)`. A field or a value may be cast with `float`, `int`, `text`, `timestamp` or `date`, and a
field entered with `at(field,key)` where it is JSON. A value with brackets, commas or spaces stands in double quotes. Each field also
takes the form `equ(field)=value`, with `geq`, `gtr`, `leq` and `lss` alike.

**Sorting** takes up to eight columns, separated by commas: `desc(field)`, `-field` or `field:desc`, and `asc(field)`,
`+field`, `field` or `field:asc`.
"""

TAGS: Final = {
    resource: {"name": name, "description": description}
    for resource, name, description in (
        ("experiment", "Experiments", "Ordering measurements, and following them."),
        ("sequence", "Sequences", "The proteins of an experiment."),
        ("target", "Targets", "The catalog of antigens, and requests for others."),
        ("result", "Results", "What was measured."),
        ("update", "Updates", "What has happened."),
        ("quote", "Quotes", "Prices, to be accepted or rejected."),
        ("invoice", "Invoices", "What is to be paid, and paying it by machine."),
        ("token", "Tokens", "Restricting, listing and revoking tokens."),
        ("webhook", "Webhooks", "Where the organisation is told of updates."),
        ("partner", "Partners", "For partners that bring customers."),
        ("feedback", "Feedback", "Telling the service."),
        ("identity", "Identity", "Who calls, and whether the service answers."),
    )
}
