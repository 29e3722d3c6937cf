"""No other text than the token itself is the token: every cut, every changed letter and every addition is a 401."""

import pytest

from assay_lab.kernel.refusals import Refusal
from lab_support.core import lab_core

LETTERS = "AQgw_-09z"


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    yield made
    made.close()


def accepted(core, token):
    try:
        core.lab.tokens.authenticate(f"Bearer {token}")
    except Refusal as refusal:
        if refusal.status != 401:
            raise
        return False
    return True


def test_the_token_itself_is_accepted(core):
    assert accepted(core, core.seeded.member_token)


def test_no_part_of_it_is(core):
    token = core.seeded.member_token
    assert not [end for end in range(len(token)) if accepted(core, token[:end])]
    assert not [start for start in range(1, len(token)) if accepted(core, token[start:])]


@pytest.mark.parametrize("letter", LETTERS)
def test_no_letter_can_be_another(core, letter):
    token = core.seeded.member_token
    changed = {token[:index] + letter + token[index + 1 :] for index in range(len(token))} - {token}
    assert len(changed) > len(token) / 2
    assert not [text for text in changed if accepted(core, text)]


@pytest.mark.parametrize("tail", ["=", "==", "A", "AA==", "KJGE5MDQ=", "\x00", ".", "assay_lab"])
def test_nothing_can_be_added(core, tail):
    assert not accepted(core, core.seeded.member_token + tail)
    assert not accepted(core, tail + core.seeded.member_token)
