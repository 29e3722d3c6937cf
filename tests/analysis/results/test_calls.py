"""One vocabulary of calls: every listed word is read, and every other one is unknown and quoted."""

import pytest

from prefect_assay.analysis.results.calls import Call, ReadCall, read_call


@pytest.mark.parametrize(
    "word", ["binder", "Binder", "yes", "Y", "T", "true", True, 1, 1.0, "1.0", "+", "positive"]
)
def test_a_positive_word_binds(word):
    assert read_call(word) == ReadCall(Call.BINDS)


@pytest.mark.parametrize(
    "word",
    [
        "no binding",
        "Non binder",
        "non-binder",
        "non_binder",
        "NonBinder",
        "nonbinder",
        "NB",
        "n.b.",
        "No",
        "N",
        "F",
        "-",
        "false",
        False,
        0,
        0.0,
        "0",
        "0.0",
        "negative",
        "does not bind",
        "no binding detected",
    ],
)
def test_a_negative_word_does_not_bind(word):
    assert read_call(word) == ReadCall(Call.DOES_NOT_BIND)


@pytest.mark.parametrize("word", ["no_expression", "No expression", "not expressed", "insoluble"])
@pytest.mark.parametrize("field", ["binding", "binding_strength", "expression"])
def test_a_design_that_did_not_express_was_not_tested(word, field):
    assert read_call(word, field) == ReadCall(Call.NO_EXPRESSION)


@pytest.mark.parametrize(
    ("field", "word", "call"),
    [
        ("expression", "none", Call.NO_EXPRESSION),
        ("expression", "low", Call.EXPRESSES),
        ("expression", "unknown", Call.UNKNOWN),
        ("binding_strength", "none", Call.DOES_NOT_BIND),
        ("binding_strength", "weak", Call.BINDS),
        ("binding", "InProgress", Call.IN_PROGRESS),
        ("binding", "", Call.NOT_STATED),
        ("binding", None, Call.NOT_STATED),
        ("binding", float("nan"), Call.NOT_STATED),
    ],
)
def test_a_word_has_the_meaning_of_its_field(field, word, call):
    assert read_call(word, field) == ReadCall(call)


@pytest.mark.parametrize(
    "word", ["maybe", "not detected", "weak", "10", "2", "none", "truthy", "yes?", "binder!", ["true"]]
)
def test_any_other_word_is_unknown_and_quoted(word):
    assert read_call(word) == ReadCall(Call.UNKNOWN, str(word))
