import pytest

from prefect_assay.service.models.vocabulary import ExperimentStatus
from prefect_assay.service.words import in_words, many


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 designs"), (1, "1 design"), (2, "2 designs"), (12345, "12,345 designs")]
)
def test_one_is_singular(number, words):
    assert many(number, "design") == words


def test_the_verb_follows_its_count():
    assert many(1, "name was", "names were") == "1 name was"
    assert many(2, "name was", "names were") == "2 names were"


def test_a_status_is_read_in_words():
    assert in_words(ExperimentStatus.WAITING_FOR_MATERIALS) == "waiting for materials"
    assert in_words("awaiting_payment") == "awaiting payment"
    assert in_words(None) == "unknown"
