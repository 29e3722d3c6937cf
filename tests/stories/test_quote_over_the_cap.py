"""Quotes over the cap per experiment are questions to a person, while the experiment whose quote is within the cap goes on.

A person answers by command, in the form of the deployment `decide`, or rejects. Only what was shown can be approved.
"""

import pytest

from support.stories.judge import judge
from support.stories.world import DESIGNS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

# Seven designs, two in an experiment: three quotes are over the cap, and that of the last design is not.
SEVEN_DESIGNS = {f"d{letter}": DESIGNS["one"][:-1] + letter for letter in "ACDEFGH"}
OPTIONS = {"assay": {"experiment_type": "thermostability"}, "designs_per_experiment": 2}


def test_quotes_over_the_cap_are_approved_or_rejected(world):
    policy = {"per_experiment_usd": 120}
    with world.story("quotes", designs=SEVEN_DESIGNS, options=OPTIONS, policy=policy) as campaign:
        campaign.start_and_wait()
        campaign.pass_days(2)
        world.until(lambda: len(campaign.state.open_questions) == 3, "three questions")
        world.until(campaign.settlements, "the payment of the other experiment")
        campaign.rest()
        assert len(campaign.settlements()) == 1

        campaign.answer("approve", cents_more=100, fails=True)
        assert len(campaign.state.open_questions) == 3
        campaign.answer("approve")

        asked = campaign.first_question()
        campaign.decide(
            "approve",
            question_id=asked.question_id,
            revision=asked.revision,
            amount_usd=asked.question.amount_cents / 100,
        )
        campaign.rest()

        campaign.answer("reject")
        assert campaign.state.open_questions == {}
        campaign.finish()
        assert len(campaign.requests("POST", "/experiments/*/quote/confirm")) == 3
        assert judge(campaign, measured=3) == []
