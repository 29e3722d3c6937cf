"""The interface of the service as data: every call with its parameters, fields and refusals. Facts, no prose.

Names are neutral words. Fields are written with dots, elements of a list and values under free names without an index
(`items.id`, `experiment_spec.sequences.*.control`). Sections are those of the service's description; `shapes` marks what
was published elsewhere.
"""

from dataclasses import dataclass

_PAGE = "limit offset filter search sort"
_CREATED = "equ(created_at) geq(created_at) gtr(created_at) leq(created_at) lss(created_at)"
_COUNTS = "total count offset"
_SPEC = (
    "experiment_type method target_id sequences sequences.* sequences.*.aa_string sequences.*.control"
    " sequences.*.metadata n_replicates antigen_concentrations parameters"
)
_METADATA = (
    "type VH VL linker framework_regions framework_regions.ch framework_regions.cl tag_location chain_order"
)
_ROW = "id code name status created_at results_status experiment_type experiment_url provider_invoice_url provider_quote_url"
_RESULT = "id title experiment_id result_type created_at summary metadata data_package_url"
_ASSAY = (
    "name base_cents replicate_addon_cents subtotal_cents experiment_type unit_price_cents replicate_price_cents"
    " n_replicates sequence_count"
)
_ACCEPTED = "id status hosted_invoice_url invoice_id payment payment.kind payment.hosted_invoice_url payment.methods payment.pay_url"
_UPDATE = "id experiment_id experiment_code name timestamp"
_INVOICE = "id provider_invoice_id status currency amount experiment_id quote_id provider_hosted_invoice_url"
_TARGET = "id name vendor_name catalog_number url uniprot_id pricing details"
_CUSTOM = "id name product_id sequence pdb_id vendor note product_url molecular_weight status"
_WEBHOOK = "id url secret_set headers enabled created_at updated_at"
_BINDING = (
    "result_type sequence sequence.name sequence.aa_string sequence.control sequence.metadata target kd_units kd_mean"
    " kd_log_std kon_mean kon_log_std koff_mean koff_log_std kd_app kd_app.value kd_app.ci_low kd_app.ci_high kon_1to1"
    " koff_1to1 binding binding_strength binding_model method fit_quality rmse_max_signal_pct expression concentration_value"
    " concentration_display performance performance.* place positive_control replicates replicates.replicate"
    " replicates.kd replicates.kon replicates.koff replicates.kon_method replicates.koff_method replicates.binding"
    " replicates.confidence replicates.expression replicates.fit_quality"
)
_MELTING = "result_type sequence_id sequence sequence_name tm onset_pts_for_ratio inflection_pts_for_ratio initial_330nm bli_result_id"


def _under(prefix: str, names: str) -> str:
    return " ".join([prefix, *(f"{prefix}.{name}" for name in names.split())])


def _items(names: str) -> str:
    return " ".join(["items", *(f"items.{name}" for name in names.split()), *_COUNTS.split()])


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `sends` are fields of its body, `gets` fields of its success, `refuses` the statuses it is listed with."""

    id: str
    section: str
    query: str = ""
    sends: str = ""
    gets: str = ""
    refuses: str = ""

    @property
    def method(self) -> str:
        return self.id.split()[0]

    @property
    def path(self) -> str:
        return self.id.split()[1]


_E = "/experiments/{experiment_id}"

CALLS: tuple[Call, ...] = (
    Call(
        "GET /experiments",
        "4.2",
        f"{_PAGE} status state experiment_type {_CREATED}",
        "",
        _items(_ROW),
        "400 401 403 500",
    ),
    Call(
        "POST /experiments",
        "4.2",
        "",
        f"{_under('experiment_spec', _SPEC)} {_under('experiment_spec.sequences.*.metadata', _METADATA)}"
        " name skip_draft auto_accept_quote payment payment.method webhook_url webhook_secret",
        f"experiment_id experiment_code status costs provider_invoice_id provider_hosted_invoice_url {_ACCEPTED}",
        "400 401 403 404 415 422 500",
    ),
    Call(
        "POST /experiments/cost-estimate",
        "4.2",
        "",
        _under("experiment_spec", _SPEC),
        f"{_under('breakdown', 'pricing_version total_cents')} {_under('breakdown.assay', _ASSAY)}"
        f" {_under('breakdown.materials', 'type target_id target_name')}"
        f" {_under('breakdown.materials', 'price_per_sequence_cents sequence_count subtotal_cents')}"
        f" {_under('breakdown.materials.target', 'name target_catalog_id')}"
        f" {_under('breakdown.materials.lots', 'lot_size_ug lot_price_cents quantity')}"
        f" {_under('incomplete', 'pricing_version')} {_under('incomplete.assay', 'name base_cents subtotal_cents')}"
        f" {_under('incomplete.materials_unavailable', 'reason')}"
        f" {_under('incomplete.materials_unavailable.target', 'name target_catalog_id')} warnings",
        "400 401 403 415 422",
    ),
    Call(
        f"GET {_E}",
        "4.2",
        "",
        "",
        f"{_ROW} {_under('experiment_spec', 'experiment_type method sequences n_replicates antigen_concentrations parameters')}"
        f" {_under('experiment_spec.target', 'name target_catalog_id sequence supplier_url')} provider_quote_id costs"
        " costs.type costs.breakdown costs.amount_cents costs.currency costs.status costs.provider_quote_url costs.expires_at"
        " costs.provider_invoice_url costs.pricing_version costs.assay costs.materials_unavailable costs.total_cents",
        "401 404 500",
    ),
    Call(
        f"PATCH {_E}",
        "4.2",
        "",
        "name description target_id antigen_concentrations n_replicates parameters sequences sequences.name"
        " sequences.aa_string sequences.control sequences.metadata webhook_url",
        "id message updated",
        "400 401 404 409 415 422",
    ),
    Call(
        f"GET {_E}/invoice", "4.2", "", "", "experiment_id status provider_invoice_url", "400 401 403 404 500"
    ),
    Call(
        f"GET {_E}/quote",
        "4.2",
        "",
        "",
        "experiment_id provider_quote_url amount_total amount_subtotal currency status expires_at updated_at",
        "404",
    ),
    Call(f"GET {_E}/quote/pdf", "shapes"),
    Call(
        f"POST {_E}/submit",
        "4.2",
        "",
        "",
        "experiment_id previous_status status confirmed_at provider_invoice_url",
        "409",
    ),
    Call(f"POST {_E}/quote/confirm", "4.2", "", "purchase_order_number notes", _ACCEPTED, "404 409 415"),
    Call(f"GET {_E}/results", "4.2", "limit offset", "", _items(_RESULT)),
    Call(
        f"GET {_E}/sequences",
        "shapes",
        "limit offset",
        "",
        _items("id name aa_preview length is_control created_at"),
    ),
    Call(f"GET {_E}/updates", "shapes", "limit offset", "", _items(_UPDATE)),
    Call(
        "POST /sequences",
        "4.3",
        "",
        "experiment_code sequences sequences.name sequences.aa_string sequences.control sequences.metadata",
        "added_count experiment_code experiment_id sequence_ids",
        "400 409 422",
    ),
    Call(
        "GET /sequences",
        "shapes",
        "limit offset search sort experiment_id",
        "",
        _items("id name aa_preview length experiment_id experiment_code is_control created_at"),
    ),
    Call(
        "GET /sequences/{sequence_id}",
        "shapes",
        "",
        "",
        "id aa_string name length is_control metadata created_at"
        f" {_under('experiment', 'experiment_id experiment_code experiment_status')}",
        "404",
    ),
    Call(
        "GET /targets",
        "4.4",
        f"{_PAGE} selfservice_only detailed show_conjugated name vendor_name",
        "",
        f"{_items(_TARGET)} items.pricing.type items.pricing.price_per_sequence_cents items.pricing.lot_prices"
        " items.pricing.lot_prices.num_sequences items.pricing.lot_prices.price_usdcent items.details.description"
        " items.details.organism items.details.molecular_weight items.details.purity items.details.sequence",
        "400",
    ),
    Call("GET /targets/{target_id}", "shapes", "", "", _TARGET, "404"),
    Call("GET /targets/request-custom", "shapes", "limit offset", "", _items(_CUSTOM)),
    Call(
        "POST /targets/request-custom",
        "shapes",
        "",
        "name product_id sequence pdb_id vendor note product_url molecular_weight",
        _CUSTOM,
        "400 409 422",
    ),
    Call("GET /targets/request-custom/{request_id}", "shapes", "", "", _CUSTOM, "404"),
    Call(
        "GET /results",
        "4.5",
        f"limit offset filter sort {_CREATED}",
        "",
        _items("id experiment_id result_type title created_at size_bytes"),
        "400",
    ),
    Call(
        "GET /results/{result_id}",
        "shapes",
        "",
        "",
        f"{_RESULT} "
        + " ".join(f"summary.{name}" for name in dict.fromkeys(f"{_BINDING} {_MELTING}".split())),
        "404",
    ),
    Call("GET /updates", "4.5", "limit offset filter sort", "", _items(_UPDATE), "400"),
    Call(
        "GET /quotes",
        "4.5",
        f"limit offset {_CREATED}",
        "",
        _items(
            "id quote_number organization amount_cents currency status valid_until created_at provider_quote_url"
        ),
        "400",
    ),
    Call(
        "GET /quotes/{quote_id}",
        "4.5",
        "",
        "",
        "id quote_number organization_id organization_name line_items line_items.description line_items.quantity"
        " line_items.unit_price_cents line_items.total_cents subtotal_cents tax_cents total_cents currency status valid_until"
        " created_at notes terms_and_conditions provider_quote_url",
        "404",
    ),
    Call(
        "POST /quotes/{quote_id}/confirm", "4.5", "", "purchase_order_number notes", _ACCEPTED, "404 409 415"
    ),
    Call("POST /quotes/{quote_id}/reject", "4.5", "", "reason feedback", "id status", "400 404 409"),
    Call(
        "POST /invoices/{invoice_id}/pay",
        "4.5",
        "",
        "",
        "already_paid settlement_reference hosted_invoice_url",
        "402 404 409",
    ),
    Call("GET /invoices", "shapes", "limit offset", "", _items(_INVOICE)),
    Call("GET /invoices/{invoice_id}", "shapes", "", "", _INVOICE, "404"),
    Call("GET /invoices/{invoice_id}/pdf", "shapes"),
    Call(
        "POST /tokens/attenuate",
        "4.6",
        "",
        "token name attenuated_parent_token_id"
        f" {_under('attenuation', 'allowed_actions allowed_org_ids allowed_resources expires_at non_destructive payment_policy read_only')}",
        "id token",
        "403",
    ),
    Call(
        "GET /tokens",
        "shapes",
        "limit offset",
        "",
        _items("id name kind parent_token_id root_token_id attenuation_spec created_at expires_at"),
    ),
    Call("POST /tokens/revoke", "shapes", "", "", "token_id revoked_at children_revoked"),
    Call("POST /partners/mint-token", "4.6", "", "org org.type expires_at", "token", "403 409"),
    Call("GET /webhooks", "shapes", "", "", " ".join(f"[].{name}" for name in _WEBHOOK.split())),
    Call("POST /webhooks", "shapes", "", "url secret headers", _WEBHOOK, "400"),
    Call("PATCH /webhooks/{webhook_id}", "shapes", "", "url headers enabled secret", _WEBHOOK, "404"),
    Call("DELETE /webhooks/{webhook_id}", "shapes", "", "", "", "404"),
    Call(
        "GET /whoami",
        "shapes",
        "",
        "",
        "user_id organizations organizations.id organizations.name organizations.role organizations.active"
        " active_organization_id permissions token_expires_at",
        "401",
    ),
    Call("GET /info/health", "shapes", "", "", "status"),
    Call("GET /info/health-db", "shapes", "", "", "status db"),
    Call(
        "POST /feedback/submit",
        "shapes",
        "",
        "request_uuid feedback_type title json_body human_note",
        "reference message",
    ),
    Call("GET /openapi.json", "1"),
)
