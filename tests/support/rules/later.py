"""Rules for what follows an order: changes, quotes, invoices, sequences, tokens, partners, webhooks (contract 4 and 6)."""

from support.rules.record import EXISTS, MAKES, RIGHTS, STATE, Rule

_RECEIVER = "the lab sends; who receives has to check"
_SENDER = "the service sends; the receiver only reads"

LATER: tuple[Rule, ...] = (
    Rule("4.2.patch.1", "most fields change only in draft and in review, later 409", client=STATE),
    Rule("4.2.patch.2", "webhook_url changes in every status", client="it allows, and never refuses"),
    Rule("4.2.patch.3", "a replacement list with duplicates is refused"),
    Rule("4.2.patch.4", "no body, or one that is no JSON, is 415", client="it always sends JSON"),
    Rule(
        "4.2.patch.empty",
        "an empty object changes nothing and is fine",
        client="it allows, and never refuses",
    ),
    Rule("4.2.patch.fields", "unknown fields and values off the limits are refused"),
    Rule("4.2.invoice.submit", "no quote: 404 names submit", client=STATE),
    Rule("4.2.invoice.confirm", "a quote that was not accepted: 404 names confirm", client=STATE),
    Rule("4.2.invoice.exists", "from the acceptance on the invoice is there", client=STATE),
    Rule("4.2.quote.later", "404 means not yet, until the quote is made", client=STATE),
    Rule("4.2.quote.once", "a quote is accepted once; expired, rejected or accepted it is 409", client=STATE),
    Rule("shapes.quote.body", "confirm needs a JSON body", client="it always sends one"),
    Rule("shapes.quote.reject", "a rejected quote makes the experiment a draft again", client=MAKES),
    Rule("shapes.quote.reason", "a rejection gives one of five reasons"),
    Rule("4.2.submit.draft", "only a draft is submitted, once", client=STATE),
    Rule("4.3.draft", "sequences are added to a draft only", client=STATE),
    Rule("4.3.answer", "adding names how many, where and which", client=MAKES),
    Rule("4.3.entries", "an entry has a name and residues, and no duplicate in its list"),
    Rule("4.6.attenuate.capability", "attenuating takes token:read", client=RIGHTS),
    Rule("4.6.attenuate.reduces", "each of the seven restrictions takes something away", client=RIGHTS),
    Rule("4.6.attenuate.inherits", "the child keeps every restriction of its source", client=RIGHTS),
    Rule("4.6.attenuate.readonly", "what is read-only never writes again", client=RIGHTS),
    Rule("4.6.attenuate.holder", "only who holds a token can attenuate it", client=RIGHTS),
    Rule(
        "4.6.attenuate.parent",
        "the parent's id is named for an attenuated token, and omitted for a root",
        client=EXISTS,
    ),
    Rule("4.6.attenuate.fields", "unknown restrictions and values of the wrong shape are refused"),
    Rule("4.6.mint.role", "minting takes the partner role", client=RIGHTS),
    Rule("4.6.mint.new", "new_org makes an organisation and its first user", client=EXISTS),
    Rule("4.6.mint.existing", "existing_org adds a user where the partner has onboarded", client=EXISTS),
    Rule("4.6.mint.email", "a known e-mail is 409", client=EXISTS),
    Rule("4.6.mint.type", "org.type is one of two words"),
    Rule("6.kind", "the only event is experiment_update", lab=_RECEIVER),
    Rule("6.body", "body and data carry the listed fields", client=_SENDER),
    Rule("6.headers", "event, delivery id and signature are in the headers", client=_SENDER),
    Rule("6.1", "a delivery is believed after its signature over the raw body holds", lab=_RECEIVER),
    Rule(
        "6.2",
        "signed with the experiment's secret, else the organisation's, else the deployment's",
        client=_SENDER,
    ),
    Rule("6.3.acknowledged", "2xx ends a delivery", client=_SENDER),
    Rule("6.3.retried", "network errors and 5xx are tried up to three times again", client=_SENDER),
    Rule("6.3.permanent", "a 4xx is final", client=_SENDER),
    Rule("6.4", "the address is set at create and changes at any status", client=_SENDER),
    Rule("6.5", "the feed holds the same updates", client=_SENDER),
)
