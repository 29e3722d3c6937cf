"""The register of the service's rules that have tests of their own, and the marks that tie a test to a rule.

One record per rule. A rule is held on both sides: the client refuses before anything is sent, and the lab refuses (or does
what the rule says) when the client's check is bypassed. Where a side cannot hold a rule, its record says why.
`rows.py` has the rules that are one wrong request each, and `SHOWN` those that a test elsewhere shows more cheaply; the others
have tests with a mark in `tests/rules` and `tests/contract`. `tests/rules/test_rules_register.py` fails for a rule without any.
"""

from dataclasses import dataclass

import pytest


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

_RECEIVER = "the lab sends; who receives has to check"
_SENDER = "the service sends; the receiver only reads"

_JSON = "it always sends JSON where a body is needed"

# fmt: off
RULES: tuple[Rule, ...] = (
    # Rules for creating, estimating and for the wire of both (contract 2.2, 2.3 and 4.2).
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
    Rule("4.2.create.fields", "a specification and a name are needed, unknown fields are refused"),
    Rule("4.2.create.url", "webhook_url is an HTTPS address"),
    Rule("4.2.create.secret", "webhook_secret is written and never read", client=MAKES),
    Rule("4.2.create.method", "payment.method is one of the two machine rails"),
    Rule("4.2.create.pinned", "the rail of an experiment stays for its life", client=STATE),
    Rule("4.2.create.draft", "without skip_draft it is a draft, with it it waits for confirmation", client=MAKES),
    Rule("4.2.create.auto", "auto_accept_quote implies skip_draft, and needs a target with a full price", client=MONEY),
    Rule("4.2.create.1", "orders through the API share the organization's project", client=MAKES),
    Rule("4.2.create.2.header", "the selector in the body equals the one in the header"),
    Rule("4.2.create.2.conflict", "two selectors that disagree are 400 with a code"),
    Rule("4.2.create.2.policy", "without a selector the caller's payment policy decides", client=MONEY),
    Rule("4.2.create.3", "accepted at once without a machine rail: 201 with a draft invoice", client=MAKES),
    Rule("4.2.create.4", "accepted at once on a machine rail: 200, an open invoice, nothing settled", client=MAKES),
    Rule("4.2.create.5", "an order that fails after its invoice voids it, and can be tried again", client=MAKES),
    Rule("4.2.create.6", "the error after a partial creation names experiment and invoice", client=MAKES),
    Rule("4.2.estimate.read", "reading permission is enough for an estimate", client="it allows, and never refuses"),
    Rule("4.2.estimate.nothing", "an estimate creates nothing", client=MAKES),
    Rule("4.2.estimate.date", "priced by the current date, and not before the first prices", client=MONEY),
    Rule("4.2.estimate.incomplete", "no self-service price: incomplete, and no error", client=MONEY),
    Rule("4.2.estimate.unknown", "an unknown target is 422", client=EXISTS),
    Rule("4.2.estimate.schema", "a field of the wrong shape is 422, a broken rule 400"),
    # Rules for what follows an order: changes, quotes, invoices, sequences, tokens, partners, webhooks (contract 4 and 6).
    Rule("4.2.patch.1", "most fields change only in draft and in review, later 409", client=STATE),
    Rule("4.2.patch.2", "webhook_url changes in every status", client="it allows, and never refuses"),
    Rule("4.2.patch.3", "a replacement list with duplicates is refused"),
    Rule("4.2.patch.4", "no body, or one that is not JSON, is 415", client="it always sends JSON"),
    Rule("4.2.patch.empty", "an empty object changes nothing and is fine", client="it allows, and never refuses"),
    Rule("4.2.patch.fields", "unknown fields and values off the limits are refused"),
    Rule("4.2.invoice.submit", "no quote: 404 names submit", client=STATE),
    Rule("4.2.invoice.confirm", "a quote that was not accepted: 404 names confirm", client=STATE),
    Rule("4.2.invoice.exists", "from the acceptance on the invoice is there", client=STATE),
    Rule("4.2.quote.later", "404 means not yet, until the quote is made", client=STATE),
    Rule("4.2.quote.once", "a quote is accepted once; expired, rejected or accepted it is 409", client=STATE),
    Rule("shapes.quote.body", "confirm needs a JSON body", client="it always sends one"),
    Rule("shapes.quote.reject", "a rejected quote makes the experiment a draft again", client=MAKES),
    Rule("shapes.quote.reason", "a rejection gives one of five reasons"),
    Rule("shapes.webhooks", "a webhook has a public https address, and headers that can be sent"),
    Rule("shapes.custom", "a custom target has a name, a product id, and a sequence or a structure"),
    Rule("shapes.feedback", "feedback has a uuid and one of three types", client="it sends no feedback"),
    Rule("4.2.submit.draft", "only a draft is submitted, once", client=STATE),
    Rule("4.3.draft", "sequences are added to a draft only", client=STATE),
    Rule("4.3.answer", "adding names how many, where and which", client=MAKES),
    Rule("4.3.entries", "an entry has a name and residues, and no duplicate in its list"),
    Rule("4.6.attenuate.capability", "attenuating takes token:read", client=RIGHTS),
    Rule("4.6.attenuate.reduces", "each of the seven restrictions takes something away", client=RIGHTS),
    Rule("4.6.attenuate.inherits", "the child keeps every restriction of its source", client=RIGHTS),
    Rule("4.6.attenuate.readonly", "what is read-only never writes again", client=RIGHTS),
    Rule("4.6.attenuate.holder", "only who holds a token can attenuate it", client=RIGHTS),
    Rule("4.6.attenuate.parent", "the parent's id is named for an attenuated token, and omitted for a root", client=EXISTS),
    Rule("4.6.attenuate.fields", "unknown restrictions and values of the wrong shape are refused"),
    Rule("4.6.mint.role", "minting takes the partner role", client=RIGHTS),
    Rule("4.6.mint.new", "new_org makes an organization and its first user", client=EXISTS),
    Rule("4.6.mint.existing", "existing_org adds a user where the partner has onboarded", client=EXISTS),
    Rule("4.6.mint.email", "a known e-mail is 409", client=EXISTS),
    Rule("4.6.mint.type", "org.type is one of two words"),
    Rule("6.kind", "the only event is experiment_update", lab=_RECEIVER),
    Rule("6.body", "body and data carry the listed fields", client=_SENDER),
    Rule("6.headers", "event, delivery id and signature are in the headers", client=_SENDER),
    Rule("6.1", "a delivery is believed after its signature over the raw body holds", lab=_RECEIVER),
    Rule("6.2", "signed with the experiment's secret, else the organization's, else the deployment's", client=_SENDER),
    Rule("6.3.acknowledged", "2xx ends a delivery", client=_SENDER),
    Rule("6.3.retried", "network errors and 5xx are tried up to three times again", client=_SENDER),
    Rule("6.3.permanent", "a 4xx is final", client=_SENDER),
    Rule("6.4", "the address is set at create and changes at any status", client=_SENDER),
    Rule("6.5", "the feed holds the same updates", client=_SENDER),
    # The rows of the error table (contract 7), each with every endpoint that it names.
    Rule("7.body", "an error has a message and a request id, also in the header", client="it reads errors"),
    Rule("7.400.parameter", "list parameters off their range or form"),
    Rule("7.400.type_filter", "an unknown experiment_type as a filter", client="a service may know more types than this client"),
    Rule("7.400.target_id", "a malformed target_id"),
    Rule("7.400.duplicate", "a duplicate sequence, in create, change and add"),
    Rule("7.400.inapplicable", "a field that the type does not take"),
    Rule("7.400.malformed", "a body that is not a JSON object", client=_JSON),
    Rule("7.400.conflict", "two payment selectors that disagree, with their code"),
    Rule("7.400.auto", "auto_accept_quote where no quote can be made", client="only the service knows prices"),
    Rule("7.400.invoice", "the invoice of an unknown or foreign experiment", client=EXISTS),
    Rule("7.401", "a missing, unknown or foreign token, at every endpoint that takes one", client="only the service knows tokens"),
    Rule("7.401.shape", "a token that a header cannot hold"),
    Rule("7.402", "the pay path of a machine rail answers with a challenge", client="the guard is in payments"),
    Rule("7.403", "a viewer's token at every endpoint that writes", client=RIGHTS),
    Rule("7.404.target", "creating with a target that is not in the catalog", client=EXISTS),
    Rule("7.404.absent", "ids that do not exist, at every endpoint with an id", client=EXISTS),
    Rule("7.404.foreign", "another organization's ids, at every endpoint with an id", client=EXISTS),
    Rule("7.404.dots", "an id that would change the path"),
    Rule("7.404.quote", "the quote before it is made", client=STATE),
    Rule("7.404.invoice", "the invoice before the quote is accepted", client=STATE),
    Rule("7.409.modify", "a change after draft and outside review", client=STATE),
    Rule("7.409.sequences", "sequences for what is not a draft", client=STATE),
    Rule("7.409.email", "minting for a known e-mail", client=EXISTS),
    Rule("7.415", "no body or no JSON, at every endpoint that needs one", client=_JSON),
    Rule("7.422.letters", "letters that are not amino acids"),
    Rule("7.422.estimate", "an estimate with an unknown target or before the first prices", client=EXISTS),
    Rule("7.429", "too many requests, with Retry-After", client="only the service counts"),
    Rule("7.500", "an internal error", client="not predictable"),
    # The limits (contract 8), each at its edge on both sides.
    Rule("8.limit", "a page has 1 to 100 rows"),
    Rule("8.limit.default", "a page has 50 rows by default", client="it leaves the default to the service"),
    Rule("8.offset", "pages begin at 0 and never before"),
    Rule("8.replicates", "1 to 5 replicates"),
    Rule("8.replicates.default", "3 replicates by default", client="it leaves the default to the service"),
    Rule("8.replicates.binning", "no replicates for binning"),
    Rule("8.binning", "4 to 28 sequences in multiples of 4"),
    Rule("8.concentrations.default", "five concentrations by default", client="it leaves the default to the service"),
    Rule("8.sort", "at most 8 columns"),
    Rule("8.secret", "at least 32 characters"),
    Rule("8.retries", "at most 3 retries with growing pauses", client="the service sends"),
    Rule("8.expiry", "tokens live for 7, 30 or 90 days or a year", client="tokens are made in the portal"),
    Rule("8.expiry.minted", "a minted token lives for 90 days by default", client=MAKES),
    Rule("8.processing", "the laboratory takes 5 to 15 days", client=MAKES),
    Rule("8.cents", "prices are whole cents without VAT", client="it reads prices"),
)

# Rules of one side that a test elsewhere shows.
_LAB = "lab/tests"
_TOUR = "tests/service/test_lab_answers.py::test_every_answer_and_every_parameter_was_played"
SHOWN: dict[tuple[str, str], str] = {
    ("4.2.create.pinned", "lab"): f"{_LAB}/rails/test_mpp.py::test_another_method_is_a_conflict",
    ("4.2.create.3", "lab"): f"{_LAB}/billing/test_billing.py::test_auto_accept_on_a_hosted_invoice",
    ("4.2.create.4", "lab"): f"{_LAB}/billing/test_billing.py::test_paying_by_x402_settles_once_and_starts_the_work",
    ("4.2.estimate.date", "lab"): f"{_LAB}/billing/test_pricing.py::test_the_two_causes_of_a_422_differ_in_their_error",
    ("4.6.attenuate.holder", "lab"): f"{_LAB}/tokens/test_tokens.py::test_only_who_holds_a_token_attenuates_it",
    ("4.6.mint.role", "lab"): f"{_LAB}/account/test_partners.py::test_it_takes_the_partner_role_and_nothing_less",
    ("4.6.mint.new", "lab"): f"{_LAB}/account/test_partners.py::test_a_new_customer_gets_an_organisation_a_user_and_a_token",
    ("4.6.mint.existing", "lab"): f"{_LAB}/account/test_partners.py::test_only_organisations_that_this_partner_brought_are_open_to_it",
    ("4.6.mint.email", "lab"): f"{_LAB}/account/test_partners.py::test_an_address_that_has_an_account_is_409",
    ("7.409.email", "lab"): f"{_LAB}/account/test_partners.py::test_an_address_that_has_an_account_is_409",
    ("6.kind", "client"): "tests/service/test_signature.py::test_what_differs_in_the_headers_is_remarked_and_no_more",
    ("6.1", "client"): "tests/service/test_signature.py::test_no_matching_secret",
    ("6.2", "lab"): f"{_LAB}/webhooks/test_organization_webhooks.py::test_the_secret_is_found_in_three_steps",
    ("6.5", "lab"): f"{_LAB}/webhooks/test_signed_delivery.py::test_every_update_is_delivered_signed_and_in_order",
    **{(rule, "lab"): _TOUR for rule in ("7.body", "7.401", "7.404.absent", "7.429", "7.500", "4.2.patch.4")},
    ("7.403", "lab"): f"{_LAB}/tokens/test_tokens.py::test_a_missing_capability_is_a_403_that_names_it",
    ("7.402", "lab"): f"{_LAB}/billing/test_billing.py::test_paying_by_x402_settles_once_and_starts_the_work",
    ("8.processing", "lab"): f"{_LAB}/experiments/test_state_machine.py::test_the_lab_window_is_5_to_15_days_and_decided_by_the_seed",
    ("8.cents", "lab"): f"{_LAB}/billing/test_billing.py::test_the_quote_equals_the_estimate",
    ("8.expiry", "lab"): f"{_LAB}/portal/test_session.py::test_four_lifetimes",
    ("8.expiry.minted", "lab"): f"{_LAB}/account/test_partners.py::test_a_new_customer_gets_an_organisation_a_user_and_a_token",
}
# fmt: on


def client_holds(*ids: str) -> pytest.MarkDecorator:
    """The test shows the client's side of these rules: refused before anything is sent."""
    return pytest.mark.rule(*ids, side="client")


def lab_holds(*ids: str) -> pytest.MarkDecorator:
    """The test shows the lab's side of these rules, with the client's check bypassed."""
    return pytest.mark.rule(*ids, side="lab")
