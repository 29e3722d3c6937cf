"""Fields of real answers: what the client makes of each, and that nothing of anybody's own is in their names."""

from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.service.drift.document import known_interface
from prefect_assay.service.drift.fields import (
    VOCABULARY,
    FieldState,
    compare_answers,
    list_published_names,
)
from prefect_assay.service.drift.witness import Exchange
from prefect_assay.service.models.billing import Quote
from prefect_assay.service.models.vocabulary import snake_case


def fields(body, operation="GET /experiments/{}", private=(), value=None):
    seen_fields = compare_answers(
        [Exchange(operation, (operation,), body, value)], known_interface(), private
    )
    return {one.place: one for one in seen_fields if one.types}


def test_a_status_in_any_spelling_is_a_word_and_a_name_is_not():
    seen = fields({"id": "e", "status": "QuoteSent", "name": "Ada", "created_at": "2026-01-02T03:04:05"})
    assert (seen["status"].state, seen["status"].words) == (FieldState.READ, ("QuoteSent",))
    assert (seen["name"].types, seen["name"].words) == (("text",), ())
    assert seen["created_at"].types == ("time without an offset",)


def test_numbers_are_powers_of_ten():
    rows = [{"summary": [{"kd_mean": 3.2e-9}, {"kd_mean": 0.5}, {"kd_mean": 0}]}]
    seen = fields({"items": rows}, "GET /experiments/{}/results")
    assert seen["items[].summary[].kd_mean"].powers_of_ten == (-9, -1)
    assert seen["items[].summary[].kd_mean"].count == 3


def test_a_value_that_the_model_leaves_out_is_odd():
    body = {"status": "open", "expires_at": "soon", "line_items": {"a": 1}, "amount_total": 100}
    seen = fields(body, "GET /experiments/{}/quote", value=Quote.model_validate(body))
    assert seen["expires_at"].state is seen["line_items"].state is FieldState.ODD
    assert seen["amount_total"].state is FieldState.READ


def test_what_is_below_a_field_that_is_kept_whole_is_not_unread():
    seen = fields({"experiment_spec": {"method": "bli"}, "plate": {"row": 1}})
    assert seen["experiment_spec.method"].state is FieldState.INSIDE
    assert seen["plate"].state is seen["plate.row"].state is FieldState.UNREAD


def test_a_field_that_no_description_knows_keeps_its_name():
    seen = fields({"id": "e", "plateLayout": {"well_count": 96}})
    assert seen["plateLayout.well_count"].state is FieldState.UNREAD


def test_a_key_that_does_not_look_like_a_field_is_hidden():
    assert set(fields({"id": "e", "binder_7": 1, "MKTAYIAK": 2, "ada@lab.example": 3})) == {"id", "*"}


def test_records_by_the_names_of_designs_are_one():
    seen = fields({"curves": {"alpha": {"kd": 1}, "beta": {"kd": 2}}, "sequences": {"gamma": "MKT"}})
    assert set(seen) == {"curves", "curves.*", "curves.*.kd", "sequences", "sequences.*"}


# A published name such as yield_std, or a status word such as NONE, is shown also where somebody's text is the same.
PUBLISHED = list_published_names(known_interface())
TEXTS = st.text(min_size=1, max_size=30).filter(
    lambda text: text not in {"kind", "role", *PUBLISHED} and snake_case(text) not in VOCABULARY
)


@given(key=TEXTS, secret=TEXTS)
def test_no_text_of_an_answer_is_in_a_name_or_a_word(key, secret):
    """Whatever a key is, it is shown only if it looks like a field's name and is nobody's text."""
    assert {"id", "name", "yield_std"} <= PUBLISHED
    row = {"id": key, "name": key, secret: key, "kind": secret, "nested": {key: [secret]}}
    body = {key: {"x": secret}, "items": [row], "role": secret, "metadata": {"tag": {key: 1}}}
    seen = fields(body, "GET /odd", private=[secret]).values()
    parts = {part.removesuffix("[]") for one in seen for part in one.place.split(".")}
    assert parts <= {"*", "items", "id", "name", "kind", "nested", "role", "metadata", "x"}
    assert {word for one in seen for word in one.words}.isdisjoint({key, secret})
