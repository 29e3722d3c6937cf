"""The lab and the client each state the contract's words and limits; where both have one, they agree."""

from enum import EnumType

import pytest

from assay_lab import vocabulary as lab_vocabulary
from assay_lab import words as lab_words
from assay_lab.measure.assays import ASSAY_TYPES as lab_types  # noqa: N811
from prefect_assay.service.assays import ASSAY_TYPES as client_types  # noqa: N811
from prefect_assay.service.models import service as client_words
from prefect_assay.service.models import vocabulary as client_vocabulary
from prefect_assay.service.models.status_questions import has_work_begun

SHARED = [name for name in vars(lab_vocabulary) if name in vars(client_vocabulary) and name[0].isupper()]


def plain(value):
    """Members as pairs of name and word; anything else compares as it is."""
    return {member.name: member.value for member in value} if isinstance(value, EnumType) else value


def test_the_lab_states_every_enumeration_of_the_client():
    enumerations = {name for name, value in vars(client_vocabulary).items() if isinstance(value, EnumType)}
    assert enumerations - {"StrEnum"} <= set(SHARED)


@pytest.mark.parametrize("name", SHARED)
def test_a_word_or_limit_is_stated_twice_alike(name):
    assert plain(getattr(lab_vocabulary, name)) == plain(getattr(client_vocabulary, name))


def test_both_have_an_entry_for_each_assay_type():
    assert list(client_types) == list(client_vocabulary.ExperimentType)
    assert list(lab_types) == list(lab_vocabulary.ExperimentType)


@pytest.mark.parametrize("kind", client_vocabulary.ExperimentType)
def test_both_state_the_rules_of_an_assay_type_alike(kind):
    lab, client = lab_types[kind], client_types[kind]
    assert lab.takes_target == client.takes_target
    assert lab.takes_method == bool(client.methods)
    assert lab.takes == client.takes
    counts = client.sequence_counts
    assert lab.sequence_counts == (counts and (counts.least, counts.most, counts.step))


def test_both_agree_when_work_has_begun():
    done = {client_vocabulary.ExperimentStatus.DONE}
    assert lab_vocabulary.UNDER_WORK | done == {
        one for one in client_vocabulary.ExperimentStatus if has_work_begun(one)
    }


@pytest.mark.parametrize("text", ["QuoteSent", "quote_sent", " Quote sent ", "In-Queue", "cancelled", "Done"])
def test_both_read_a_status_alike(text):
    assert lab_vocabulary.snake_case(text) == client_vocabulary.snake_case(text)


def test_both_spell_names_of_fields_and_headers_alike():
    body = {
        "provider_invoice_url": "x",
        "items": [{"provider_quote_url": "y", "metadata": {"provider_note": 1}}],
        "sequences": {"provider_1": "MKT"},
        "name": "provider_name",
    }
    lab, client = (module.WireWords(provider="acme", service="Acme") for module in (lab_words, client_words))
    assert lab.to_wire(body) == client.to_wire(body) != body
    assert client.from_wire(lab.to_wire(body)) == body
    assert lab.header("Signature") == client.header("Signature") == "X-Acme-Signature"


def test_both_mark_a_simulation_alike():
    marks = ("SIMULATED_HEADER", "SIMULATED_VALUE", "NEUTRAL_PROVIDER", "NEUTRAL_SERVICE")
    assert [getattr(lab_words, name) for name in marks] == [getattr(client_words, name) for name in marks]
