"""`prefect-assay drift`: no difference with the local lab, and a line for every change of its description."""

import copy
import json

import pytest

from assay_lab.api import load_document
from lab_support.described import find_places
from prefect_assay.cli.drift import show_drift
from prefect_assay.errors import InputError, OutcomeUnknown, UnexpectedAnswer
from prefect_assay.service.drift.compare import compare, field_of
from prefect_assay.service.drift.document import above, facts_of, known_interface
from prefect_assay.service.drift.usage import usage_by_operation
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import PayAnswer
from prefect_assay.service.models.service import WireWords
from support.client_calls import ID, answer_call, list_client_calls
from support.command import command
from support.services.fault_server import fault_server, reply

# Read where a service has it: published elsewhere, or in another variant of the interface (contract 9.4).
ELSEWHERE = {
    "POST /experiments/{}/quote/confirm": {"experiment_id"},
    "POST /quotes/{}/confirm": {"experiment_id"},
    "GET /experiments/{}/invoice": {"id"},
    "GET /invoices": {"items[].created_at"},
    "GET /invoices/{}": {"created_at"},
    "GET /webhooks": {"items", "total", "offset"},
}
# One model for every form of these.
ONE_MODEL = {
    "GET /experiments/{}/quote",
    "GET /quotes",
    "GET /quotes/{}",
    "POST /quotes/{}/reject",
    "GET /sequences",
    "GET /sequences/{}",
    "GET /experiments/{}/sequences",
    "GET /updates",
    "GET /experiments/{}/updates",
    "GET /experiments/{}/results",
    "GET /results/{}",
    "POST /experiments",
}


def changes(now, known=None):
    return compare(known or facts_of(load_document(partner=True)), now, usage_by_operation())


def lab():
    """The lab's description, with every parameter at its call."""
    raw = load_document(partner=True)
    shared = raw["components"]["parameters"]
    for item in raw["paths"].values():
        for call in item.values():
            if isinstance(call, dict) and "parameters" in call:
                call["parameters"] = [
                    copy.deepcopy(shared[part["$ref"].rpartition("/")[2]]) if "$ref" in part else part
                    for part in call["parameters"]
                ]
    return raw


def get_operation(raw, path, method):
    return raw["paths"][f"/api/v1{path}"][method]


def schema(raw, name):
    return raw["components"]["schemas"][name]


def test_the_client_knows_the_lab_as_it_is():
    assert changes(facts_of(load_document(partner=True)), known_interface()) == ()
    assert changes(facts_of(load_document()), known_interface()) == (), (
        "partners' routes are not missed by others"
    )


_USAGE = usage_by_operation()


@pytest.mark.parametrize("operation", _USAGE)
def test_what_the_client_reads_is_described(operation):
    fields = {field_of(place) for place in facts_of(load_document(partner=True))[operation]}
    if operation not in ONE_MODEL:
        absent = {name for name, read in _USAGE[operation].read.items() if not fields & set(read.names)}
        assert absent == ELSEWHERE.get(operation, set())


@pytest.mark.parametrize("call", list_client_calls(), ids=lambda call: call.method)
def test_what_the_client_sends_is_known(call):
    """`x-sent` and `x-always-sent` of the description say what the client's requests show."""
    used = _USAGE[call.operation.name]
    sent = [
        {f"query {name}" for name in request.url.params}
        | {f"header {name}" for name in request.headers if name.startswith("x-service")}
        | set(_sent_places(json.loads(request.content or "null"), call.operation))
        for request in call.requests
    ]
    plain = {place for place in used.sent if not place.endswith("[]") and place != "body"}
    assert set().union(*sent) == plain
    for places in sent:
        holders = {*places, "body"} | {f"{place}[]" for place in places}
        for place in used.always & plain:
            assert place in places or above(place) not in holders, place


def _sent_places(body, operation):
    """The fields of a body; below `metadata` the keys are the user's."""
    if body is not None:
        for place in find_places(operation.body_schema, body):
            if "metadata." not in place:
                yield f"body {place}"


def test_every_place_that_goes_and_every_place_that_comes_is_named():
    known = known_interface()
    for operation, places in known.items():
        for place in places:
            whole, without = {operation: places}, {operation: {p: f for p, f in places.items() if p != place}}
            for kind, before, after in (("gone", whole, without), ("new", without, whole)):
                differences = [(c.kind, c.operation, c.place) for c in compare(before, after, _USAGE)]
                assert differences == [(kind, operation, place)]


def test_every_aspect_that_changes_is_named():
    known = known_interface()
    for operation, places in known.items():
        for place, fact in places.items():
            for aspect in fact:
                other = {"maximum": -1} if aspect == "limits" else ["something else"]
                changed = {operation: {**places, place: {**fact, aspect: other}}}
                (change,) = compare({operation: places}, changed, _USAGE)
                assert (change.kind, change.operation, change.place) == ("changed", operation, place)
                assert change.detail.startswith(aspect)


def gone_operation(raw):
    del raw["paths"]["/api/v1/updates"]


def new_operation(raw):
    raw["paths"]["/api/v1/plates"] = {"get": {"responses": {"200": {"description": "x"}}}}


def gone_parameter(raw):
    operation = get_operation(raw, "/targets", "get")
    operation["parameters"] = [p for p in operation["parameters"] if p.get("name") != "detailed"]


def required_parameter(raw):
    get_operation(raw, "/quotes", "get")["parameters"].append(
        {"name": "region", "in": "query", "required": True, "schema": {"type": "string"}}
    )


def optional_parameter(raw):
    get_operation(raw, "/quotes", "get")["parameters"].append(
        {"name": "region", "in": "query", "required": False, "schema": {"type": "string"}}
    )


def smaller_pages(raw):
    for parameter in get_operation(raw, "/invoices", "get")["parameters"]:
        if parameter.get("name") == "limit":
            parameter["schema"]["maximum"] = 50


def new_required_field(raw):
    body = schema(raw, "CreateExperiment")
    body["properties"]["project_id"] = {"type": "string"}
    body["required"].append("project_id")


def new_optional_field(raw):
    schema(raw, "CreateExperiment")["properties"]["project_id"] = {"type": "string"}


def gone_request_field(raw):
    del schema(raw, "ModifyExperiment")["properties"]["webhook_url"]


def other_type(raw):
    schema(raw, "ModifyExperiment")["properties"]["n_replicates"] = {"type": "string"}


def gone_request_value(raw):
    reason = schema(raw, "RejectQuote")["properties"]["reason"]
    reason.clear()
    reason["enum"] = ["price", "other"]


def gone_answer_field(raw):
    del schema(raw, "AddedSequences")["properties"]["added_count"]


def new_answer_field(raw):
    schema(raw, "AddedSequences")["properties"]["plate"] = {"type": "string"}


def now_required(raw, *fields):
    schema(raw, "SequenceEntry")["required"] += fields


def required_and_always_sent(raw):
    now_required(raw, "control")


def required_and_sometimes_sent(raw):
    now_required(raw, "metadata")


def required_in_an_order(raw):
    schema(raw, "ExperimentSpec")["required"] += ["n_replicates"]


def required_parameter_that_is_known(raw):
    for parameter in get_operation(raw, "/updates", "get")["parameters"]:
        if parameter.get("name") == "limit":
            parameter["required"] = True


def gone_success(raw):
    answers = get_operation(raw, "/sequences", "post")["responses"]
    answers["202"] = answers.pop("201")


MUTATIONS = [
    (gone_operation, "gone: GET /updates", True),
    (new_operation, "new: GET /plates", False),
    (gone_parameter, "gone: GET /targets: query detailed", True),
    (required_parameter, "new: GET /quotes: query region: required", True),
    (optional_parameter, "new: GET /quotes: query region: string", False),
    (smaller_pages, "changed: GET /invoices: query limit: limits was maximum 100, minimum 1", True),
    (new_required_field, "new: POST /experiments: body project_id: required", True),
    (new_optional_field, "new: POST /experiments: body project_id: string", False),
    (gone_request_field, "gone: PATCH /experiments/{}: body webhook_url", True),
    (other_type, "changed: PATCH /experiments/{}: body n_replicates: type was", True),
    (gone_request_value, "changed: POST /quotes/{}/reject: body reason: enum was budget, other, price", True),
    (gone_answer_field, "gone: POST /sequences: answer 201 added_count", True),
    (new_answer_field, "new: POST /sequences: answer 201 plate: string", False),
    (
        required_and_always_sent,
        "changed: POST /sequences: body sequences[].control: required was false, is true",
        False,
    ),
    (required_and_sometimes_sent, "changed: POST /sequences: body sequences[].metadata: required was", True),
    (
        required_in_an_order,
        "changed: POST /experiments: body experiment_spec.n_replicates: required was",
        True,
    ),
    (required_parameter_that_is_known, "changed: GET /updates: query limit: required was", True),
    (gone_success, "gone: POST /sequences: answer 201", True),
]


@pytest.mark.parametrize(("mutate", "line", "breaks"), MUTATIONS, ids=[m.__name__ for m, _, _ in MUTATIONS])
def test_a_changed_description_is_named(mutate, line, breaks):
    raw = lab()
    mutate(raw)
    differences = changes(facts_of(raw))
    named = [change for change in differences if str(change).startswith(line)]
    assert named, [str(change) for change in differences]
    assert named[0].breaks is breaks
    assert any(change.breaks for change in differences) is breaks


# The two forms of a create's answer differ: what is required in one may be absent in the other.
BY_STATUS = {
    ("experiments.create", "experiment_id"),
    ("experiments.create", "status"),
    ("experiments.create", "id"),
}


def example_of(raw, value, name=""):
    """A value that a schema of the description allows, with every field and one row in every list."""
    if "$ref" in value:
        return example_of(raw, raw["components"]["schemas"][value["$ref"].rpartition("/")[2]], name)
    if "allOf" in value and "if" not in value["allOf"][0]:
        parts = [*value["allOf"], {"properties": value["properties"]}]
        return {key: inner for part in parts for key, inner in example_of(raw, part, name).items()}
    for word in ("anyOf", "oneOf"):
        if word in value:
            return example_of(raw, next(v for v in value[word] if v.get("type") != "null"), name)
    kind = value.get("type", "string" if "enum" in value else "object")
    kind = next(k for k in kind if k != "null") if isinstance(kind, list) else kind
    if kind == "object":
        return {key: example_of(raw, below, key) for key, below in value.get("properties", {}).items()}
    if kind == "array":
        return [example_of(raw, value.get("items", {}), name)]
    # What the calls of `client_calls` ask for: an answer about another record would be refused.
    text = ID if name == "id" or name.endswith("_id") else "a"
    if name.endswith("_at") or value.get("format") == "date-time":
        text = "2026-03-02T09:00:00Z"
    # Sums that add up whatever is left out of them.
    plain = {"string": text, "integer": 0, "number": 1.5, "boolean": True, "null": None}
    return value.get("enum", [value.get("const", plain[kind])])[0]


def replaced(value, path, change):
    """A copy in which `change` was applied to every holder of the last name of a path such as `items[].name`."""
    name, _, below = path.partition(".")
    key = name.removesuffix("[]")
    made = dict(value)
    if not below:
        change(made, key)
    elif key in made:
        inner = made[key]
        made[key] = (
            [replaced(item, below, change) for item in inner]
            if name.endswith("[]")
            else replaced(inner, below, change)
        )
    return made


def readable(call, status, body):
    try:
        value = answer_call(call, status, body)
    except (UnexpectedAnswer, OutcomeUnknown):
        return False
    rows = value.items if isinstance(value, Page) else value if isinstance(value, list | tuple) else (value,)
    used = {place.removeprefix("items[].") for place in _USAGE[call.operation.name].read}
    assert all(type(row).model_fields.keys() <= used for row in rows if not isinstance(row, PayAnswer))
    return True


def answers_of(operation):
    """Status, example and the paths of all fields of each success with a JSON object."""
    for status in sorted(operation.statuses):
        schema = operation.answer_schema(status) if status < 300 else None
        if schema is not None:
            prefix = f"answer {status} "
            paths = [
                place.removeprefix(prefix)
                for place in known_interface()[operation.name]
                if place.startswith(prefix)
            ]
            body = example_of(load_document(partner=True), schema)
            yield status, body, [p for p in paths if "*" not in p and not p.endswith("[]")]


def seen(how, fact):
    """The field's fact after a change, and what stands in an answer then; None where that is not a change."""
    if how == "gone":
        return None, lambda holder, key: holder.pop(key, None)
    kinds, odd = (["string"], "odd") if "object" in fact["type"] else (["object"], {"odd": [1]})
    if how == "null":
        kinds, odd = sorted({*fact["type"], "null"}), None
    return {**fact, "type": kinds}, lambda holder, key: holder.__setitem__(key, odd)


@pytest.mark.parametrize("how", ["gone", "null", "another type"])
def test_a_difference_breaks_if_and_only_if_the_client_cannot_read_the_answer(how):
    compared = 0
    for call in list_client_calls():
        operation = call.operation
        places = known_interface()[operation.name]
        for status, body, paths in answers_of(operation):
            assert readable(call, status, body), call.method
            for path in paths:
                place = f"answer {status} {path}"
                now = {
                    p: f
                    for p, f in places.items()
                    if p != place and not p.startswith((f"{place}.", f"{place}["))
                }
                fact, change = seen(how, places[place])
                if fact == places[place] or (call.method, path) in BY_STATUS:
                    continue
                now |= {place: fact} if fact else {}
                named = compare({operation.name: places}, {operation.name: now}, _USAGE)
                (difference,) = [one for one in named if one.place == place]
                odd = replaced(body, path, change)
                if odd == body:  # the example is of another published shape
                    continue
                assert difference.breaks is not readable(call, status, odd), f"{call.method}: {difference}"
                compared += 1
    assert compared > 200


def test_words_and_forms_of_a_document_are_no_drift():
    words = WireWords(provider="acme", service="Foo")
    assert changes(facts_of(load_document(words, partner=True), words)) == ()
    assert changes(facts_of(load_document(words, partner=True)))  # without the words it is another interface
    raw = lab()
    body = schema(raw, "AddSequences")
    raw["components"]["schemas"]["AddSequences"] = {"allOf": [{"$ref": "#/components/schemas/Inner"}]}
    raw["components"]["schemas"]["Inner"] = body
    raw["paths"] = {path.removeprefix("/api/v1"): item for path, item in raw["paths"].items()}
    assert changes(facts_of(raw)) == ()


def test_a_document_that_refers_to_itself_ends():
    raw = lab()
    schema(raw, "AddedSequences")["properties"]["again"] = {"$ref": "#/components/schemas/AddedSequences"}
    assert [c.kind for c in changes(facts_of(raw))] == ["new"]


@pytest.mark.parametrize("raw", [{}, {"paths": {}}, {"paths": []}])
def test_no_document_is_bad_input(raw):
    with pytest.raises(InputError):
        facts_of(raw)


def test_the_command_on_files(tmp_path, capsys):
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(lab()))
    show_drift(path, base_url=None, account=None, words=WireWords(), as_json=False)
    assert "the client knows" in " ".join(capsys.readouterr().out.split())

    path.write_text("no json")
    with pytest.raises(InputError, match="is not JSON"):
        show_drift(path, base_url=None, account=None, words=WireWords(), as_json=False)

    raw = lab()
    gone_operation(raw)
    path.write_text(json.dumps(raw))
    improved = command("drift", str(path), "--json")
    assert improved.code == 0
    report = improved.json()
    assert report["breaks"] is False  # no campaign needs it
    assert report["changes"] == [
        {
            "kind": "gone",
            "operation": "GET /updates",
            "place": "",
            "detail": "",
            "effect": "breaks",
            "breaks": True,
            "need": "improves",
        }
    ]
    del raw["paths"]["/api/v1/targets"]
    path.write_text(json.dumps(raw))
    broken = command("drift", str(path), "--json")
    assert (broken.code, broken.json()["breaks"]) == (1, True)


def test_differences_stand_below_their_call_the_worst_first(tmp_path, capsys):
    raw = lab()
    new_answer_field(raw)
    del schema(raw, "AddedSequences")["properties"]["experiment_code"]
    smaller_pages(raw)
    gone_operation(raw)
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(raw))
    show_drift(path, base_url=None, account=None, words=WireWords(), as_json=False)
    output = capsys.readouterr().out
    assert "  breaks  gone: without it runs wake at their next look" in output
    shown = [line.split(":")[0] for line in output.splitlines()]
    assert shown[:7] == [
        "GET /invoices  (improves)",
        "  breaks  changed",
        "GET /updates  (improves)",
        "  breaks  gone",
        "POST /sequences  (unused)",
        "  empty   gone",
        "          new",
    ]


def test_the_description_is_read_without_a_token(monkeypatch, capsys):
    monkeypatch.delenv("PREFECT_ASSAY_TOKEN", raising=False)
    words = WireWords(provider="acme", service="Foo")
    with fault_server() as server:
        server.will(reply(200, load_document(words)))
        show_drift(None, base_url=server.base_url, account=None, words=words, as_json=False)
        assert server.seen[0].target == "/api/v1/openapi.json"
        assert "authorization" not in server.seen[0].headers
        assert "the client knows" in " ".join(capsys.readouterr().out.split())

        monkeypatch.setenv("PREFECT_ASSAY_TOKEN", "canary")
        monkeypatch.setenv("PREFECT_ASSAY_BASE_URL", server.base_url)
        server.will(reply(200, load_document(words, partner=True)))
        show_drift(None, base_url=None, account=None, words=words, as_json=False)
        assert server.seen[0].headers["authorization"] == "Bearer canary"

        server.will(reply(200, b"<html>log in</html>"))
        with pytest.raises(InputError, match="does not describe itself"):
            show_drift(None, base_url=server.base_url, account=None, words=words, as_json=False)


def test_something_has_to_be_named(monkeypatch):
    monkeypatch.delenv("PREFECT_ASSAY_BASE_URL", raising=False)
    with pytest.raises(InputError, match="PREFECT_ASSAY_BASE_URL"):
        show_drift(None, base_url=None, account=None, words=WireWords(), as_json=False)
    with pytest.raises(InputError, match="one of"):
        show_drift(None, base_url="http://127.0.0.1:1", account="x", words=WireWords(), as_json=False)
