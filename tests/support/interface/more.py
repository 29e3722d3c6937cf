"""What the interface has besides calls: headers, error bodies, states, the list language, events, sign-in, earlier forms.

Each item names where the client has it, where the lab has it and what shows it; the places are imported and the tests
looked up when the coverage table is made. A dash says that a side has no part in it.
"""

from dataclasses import dataclass

_LANGUAGE = "rules/test_rules_language.py::test_every_operator"
_SORTS = "rules/test_rules_language.py::test_every_form_of_sort"
_TESTS = "rules/test_rules_language.py::test_every_test_of_a_field"
_STATES = "rules/test_rules_states.py::test_the_whole_way_of_a_draft"
_DELIVERY = "rules/test_rules_webhooks.py::test_a_delivery_has_the_listed_fields"
_LIMITS = "rules/test_rules_limits.py"
_VARIANT = "client/test_client_variant.py"
_SQL = "lab.requests.filter_sql:where"
_SORT = "lab.requests.filter_sql:order_by"
_WORDS = "models.vocabulary"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing of the interface; places are `module:attribute`, relative to the package."""

    section: str
    name: str
    client: str
    lab: str
    test: str


def _operators() -> tuple[Item, ...]:
    builders = {"in": "in_", "and": "and_", "or": "or_", "not": "not_"}
    casts = {name: f"as_{name}" for name in ("float", "int", "text", "timestamp", "date")}
    names = "eq neq gt lt gte lte contains between in and or not is_null is_not_null at float int text timestamp date"
    return tuple(
        Item(
            "4.1", f"filter `{name}`", f"client.filters:{(builders | casts).get(name, name)}", _SQL, _LANGUAGE
        )
        for name in names.split()
    )


def _statuses() -> tuple[Item, ...]:
    names = (
        "draft waiting_for_confirmation quote_sent waiting_for_materials in_queue in_production data_analysis in_review done"
        " canceled"
    )
    later = {"canceled": "rules/test_rules_states.py::test_canceled_from_where_nothing_is_paid"}
    return tuple(
        Item(
            "3",
            f"status `{name}`",
            f"{_WORDS}:ExperimentStatus",
            "lab.webhooks.updates:move",
            later.get(name, _STATES),
        )
        for name in names.split()
    )


def _delivery() -> tuple[Item, ...]:
    outer = "delivery_id event timestamp api_version data"
    inner = "type experiment_id experiment_code organization_id update_id name description update_type eta created_at"
    fields = [("models.update:Delivery", name, name) for name in outer.split()]
    fields += [("models.update:DeliveryData", f"data.{name}", name) for name in inner.split()]
    return tuple(
        Item("6", f"body `{name}`", f"{model}.{field}", "lab.webhooks.delivery:prepare", _DELIVERY)
        for model, name, field in fields
    )


MORE: tuple[Item, ...] = (
    Item("1", "wire words", "models.service:WireWords", "models.service:WireWords", "lab/web/test_http.py::test_words_given_tokens_and_restarts"),
    Item("1", "openapi.json for partners", "client.operations.service:openapi", "lab.api:rendered", "lab/api/test_openapi.py::test_it_needs_no_token_and_shows_partners_more"),
    Item("1", "tool-protocol endpoint", "-", "lab.web.tool_endpoint:ToolEndpoint", "lab/web/test_tools.py::test_every_call_is_a_tool_with_the_same_parameters"),
    Item("2.12", "error body `error`", "client.http.failures:Problem.messages", "lab.kernel.refusals:Refusal.message", "rules/test_rules_errors.py::test_every_endpoint_wants_a_token"),
    Item("2.12", "error body `request_id`", "errors:AssayError.request_id", "lab.api.shapes:Error.request_id", "rules/test_rules_errors.py::test_every_endpoint_wants_a_token"),
    Item("7", "error body `code`", "errors:RequestRefused.code", "lab.kernel.refusals:Refusal.code", "rules/test_rules_create.py::test_the_lab_sees_the_conflict"),
    Item("4.2", "error body `experiment_id`", "errors:PartialOrder.experiment_id", "lab.experiments.orders:break_order", "rules/test_rules_create.py::test_the_client_adopts_a_partial_order"),
    Item("4.2", "error body `provider_invoice_id`", "errors:PartialOrder.invoice_id", "lab.experiments.orders:break_order", "rules/test_rules_create.py::test_what_fails_after_its_invoice_voids_it_and_says_what_exists"),
    Item("4.2", "error body `provider_hosted_invoice_url`", "errors:PartialOrder.hosted_invoice_url", "lab.experiments.orders:break_order", "rules/test_rules_create.py::test_what_fails_after_its_invoice_voids_it_and_says_what_exists"),
    Item("shapes", "submit's `error_kind`", "client.http.failures:problem_of", "lab.experiments.experiments:submit", "lab/experiments/test_steps.py::test_submitting_twice_is_a_conflict_that_says_what_to_do"),
    Item("shapes", "submit's `hint`", "client.http.failures:problem_of", "lab.experiments.experiments:submit", "client/test_client_failures.py::test_the_hint_of_a_conflict_is_shown"),
    *_statuses(),
    Item("3", "`results_status`: none, partial, all", f"{_WORDS}:ResultsStatus", "lab.experiments.state_machine:apply", _STATES),
    Item("3", "spellings of a status", f"{_WORDS}:snake_case", f"{_WORDS}:snake_case", _LANGUAGE),
    Item("2.6", "quote status draft, open, accepted, canceled, stale", f"{_WORDS}:QuoteStatus", "lab.billing.quotes:acceptance_word", "rules/test_rules_states.py::test_an_expired_quote_and_a_rejected_one_make_a_draft"),
    Item("2.7", "quote status draft, pending, accepted, rejected, expired", f"{_WORDS}:QuoteStatus", "lab.billing.quotes:LISTING", "rules/test_rules_states.py::test_an_expired_quote_and_a_rejected_one_make_a_draft"),
    Item("shapes", "invoice status", f"{_WORDS}:InvoiceStatus", "lab.billing.invoices:LISTING", "rules/test_rules_create.py::test_accepted_at_once_on_a_hosted_invoice"),
    *_operators(),
    Item("4.1", "sort `asc(field)`", "client.filters:asc", _SORT, _SORTS),
    Item("4.1", "sort `desc(field)`", "client.filters:desc", _SORT, _SORTS),
    Item("4.1", "sort `-field`, `+field`, `field`", "client.lists:Sorting", _SORT, _SORTS),
    Item("4.1", "sort `field:asc`, `field:desc`", "client.lists:Sorting", _SORT, _SORTS),
    *(
        Item("4.1", f"test `{word}(field)=`", f"client.parameters:{word}", "lab.requests.filter_sql:compare", _TESTS)
        for word in ("equ", "geq", "gtr", "leq", "lss")
    ),
    Item("4.1", "test `status=`", "client.parameters:plain", "lab.requests.lists:page", "rules/test_rules_language.py::test_search_and_plain_status"),
    Item("4.2", "header `X-Service-Payment-Method`", "client.operations.experiments:create", "lab.requests.core:Call.service_header", "rules/test_rules_create.py::test_header_and_body_select_alike"),
    Item("4.5", "challenge of x402-exact", "payments.rails.x402:read_offers", "lab.rails.x402:challenge", "lab/rails/test_x402.py"),
    Item("4.5", "challenge of mpp-spt", "payments.rails.mpp:read_offers", "lab.rails.mpp:challenge", "lab/rails/test_mpp.py::test_the_challenge_names_the_terms_and_where_the_credential_goes"),
    Item("5.1", "header `Authorization`", "client.http.wire:BearerAuth", "lab.tokens.registry:Tokens.authenticate", "rules/test_rules_errors.py::test_every_endpoint_wants_a_token"),
    Item("5.2", "shape of a token", "client.http.address:checked_token", "lab.tokens.encoding:Seal", "lab/tokens/test_tokens.py"),
    Item("5.3", "roles Member, Viewer, partner", "models.tokens:Organization.role", "lab.tokens.permissions:may", "rules/test_rules_errors.py::test_a_viewer_writes_nowhere"),
    Item("5.4", "tokens made in the portal", "-", "lab.portal.account_pages:create", f"{_LIMITS}::test_the_portal_makes_tokens_for_four_spans"),
    Item("5.7", "OAuth sign-in for tools", "-", "lab.account.oauth:SignInEndpoint", "lab/account/test_oauth.py::test_the_whole_flow_from_the_401"),
    Item("4.6", "attenuation without the service", "client.operations.tokens:attenuate_offline", "lab.tokens.registry:Tokens.public_key", "lab/tokens/test_attenuation.py::test_online_and_offline_write_the_same_checks"),
    *_delivery(),
    Item("6", "header `X-Service-Event`", "webhooks.signature:verify", "lab.webhooks.delivery:prepare", _DELIVERY),
    Item("6", "header `X-Service-Delivery-Id`", "webhooks.signature:verify", "lab.webhooks.delivery:prepare", _DELIVERY),
    Item("6", "header `X-Service-Signature`", "webhooks.signature:verify", "lab.webhooks.delivery:prepare", _DELIVERY),
    Item("shapes", "header `x-request-id`", "client.http.request:Answer.header_request_id", "lab.web.edge:Edge", "rules/test_rules_errors.py::test_every_endpoint_wants_a_token"),
    Item("shapes", "429 with `Retry-After`", "errors:RateLimited.retry_after", "lab.service.faults:Fault", "rules/test_rules_errors.py::test_too_many_requests"),
    Item("shapes", "data package", "client.sync:AssayClient.download", "lab.experiments.results:package", "lab/web/test_http.py::test_the_whole_way_to_a_data_package"),
    Item("9", "`pricing_version`", "models.billing:Breakdown.pricing_version", "lab.billing.pricing:price", "rules/test_rules_create.py::test_nothing_has_a_price_before_the_first_prices"),
    Item("9", "`api_version`", "models.update:Delivery.api_version", "lab.webhooks.delivery:prepare", _DELIVERY),
    Item("9.4", "earlier feed: `cursor`, `updates`, `next_cursor`", "client.operations.updates:updates", "-", f"{_VARIANT}::test_the_feed_is_followed_by_its_cursor"),
    Item("9.4", "earlier feed: filters `experiment_id` and `type`", "client.operations.updates:updates", "-", f"{_VARIANT}::test_its_own_filters_are_used_once_it_is_recognised"),
    Item("9.4", "earlier items: `description`, `eta`, `is_resolved`, `status_change`", "models.update:Update.status_change", "-", f"{_VARIANT}::test_the_feed_is_followed_by_its_cursor"),
    Item("9.4", "earlier results: `results`", "client.operations.results:result_summaries", "-", f"{_VARIANT}::test_its_results_are_read"),
    Item("9.4", "earlier modification by POST", "client.operations.experiments:modify", "-", f"{_VARIANT}::test_a_modification_is_sent_by_post_where_patch_does_not_exist"),
    Item("9.4", "earlier modification: `status`", "client.operations.experiments:modify", "-", f"{_VARIANT}::test_a_status_is_sent_by_post_at_once"),
    Item("9.4", "earlier notification of a status change", "webhooks.legacy_notifications:status_change", "-", "webhooks/test_legacy_notifications.py::test_a_status_change_is_read_as_a_delivery"),
)  # fmt: skip
