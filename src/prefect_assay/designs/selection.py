"""A selection from a pool: how it is made, the chosen designs with their reasons, and the fate of all others."""

import zlib
from array import array
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from pydantic import ConfigDict, Field, model_validator

from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.scores import score_direction
from prefect_assay.service.assays import Objective
from prefect_assay.service.bounds import (
    LIST_MAX,
    Count,
    Line,
    Positive,
    Seed,
)
from prefect_assay.service.form import form_of
from prefect_assay.service.models.base import Model, StoredModel
from prefect_assay.service.models.sequences import ProteinSequence

REASON_COLUMN: Final = "selection_reason"


class SelectionPolicy(StrEnum):
    """How candidates are ranked."""

    GP = "gp"  # by a Gaussian process on sequences, methods, authors, parents and scores, fitted to the history
    TOP_SCORE = "top_score"  # by the designer's score
    RANDOM = "random"


class Aim(StrEnum):
    """What a purchase is for."""

    HITS = "hits"  # as many hits as possible
    BEST = "best"  # the best value


class SelectionSettings(Model):
    """How the designs of the next round are chosen. Limits do not count controls."""

    model_config = ConfigDict(json_schema_extra=form_of())

    policy: SelectionPolicy = Field(default=SelectionPolicy.GP, description="How candidates are ranked.")
    seed: Seed = Field(default=0, description="The same seed and input give the same choices.")
    score_column: Line | None = Field(
        default=None, description="The designer's column to rank by, such as ipTM."
    )
    higher_is_better: bool | None = Field(
        default=None,
        description="Whether a high score is a good one. Default: as the words of its title say; needed where they do not say it.",
    )
    method_column: Line | None = Field(
        default=None,
        description="The designer's column that names the method. Default: method, if there is one.",
    )
    objective: Objective = Field(
        default=Objective.AFFINITY, description="What the next round should improve."
    )
    hit_limit: Positive | None = Field(
        default=None,
        description="What a hit reaches: K_D in nM at most, melting temperature in degrees Celsius or concentration in nM "
        "at least. Default: every design that binds, melts or expresses is a hit.",
    )
    aim: Aim | None = Field(
        default=None,
        description="With gp: most hits, or the best value. Default: hits, unless most measured designs hit already.",
    )
    target: Line | None = Field(
        default=None,
        description="The target of the pool, as the history names it. Default: the pool's column target, or the only "
        "target of the history.",
    )
    controls: tuple[Line, ...] = Field(
        default=(), max_length=LIST_MAX, description="Names of designs that are always bought."
    )
    max_per_method: Count | None = Field(default=None, description="Designs of one method at most.")
    max_per_parent: Count | None = Field(default=None, description="Designs of one parent at most.")
    identity: float | None = Field(
        default=None,
        ge=0.7,
        le=1,
        description="Designs at least this identical are one cluster: 0.9 is 90 %.",
    )
    max_per_cluster: Count | None = Field(
        default=None, description="With identity: designs of one cluster at most. Default: 1."
    )

    one_family: bool = Field(
        default=False,
        description="With gp: also fill a batch from one family of near copies. Default: at most a third of it.",
    )

    @model_validator(mode="after")
    def _limits_apply(self) -> Self:
        """A setting that the others leave without effect is a mistake."""
        for setting, idle, needs in (
            ("higher_is_better", self.score_column is None, "a score_column"),
            ("max_per_cluster", self.identity is None, "an identity"),
            ("hit_limit", self.policy is not SelectionPolicy.GP, "the policy gp"),
            ("aim", self.policy is not SelectionPolicy.GP, "the policy gp"),
        ):
            if idle and getattr(self, setting) is not None:
                raise ValueError(f"{setting} has no effect without {needs}; add it, or leave {setting} out")
        return self

    def find_direction_problem(self, producer: str | None = None) -> str | None:
        """What to do where neither the score's title nor `higher_is_better` says which direction is better; else None.

        Args:
            producer: the program that wrote the pool, where it is known.
        """
        column = self.score_column
        if column is None or self.higher_is_better is not None:
            return None
        if score_direction(column, producer) is not None:
            return None
        return (
            f"the title {column!r} does not say whether a higher or a lower score is better, so that the worst designs might be "
            "bought; say it with --higher-is-better or --lower-is-better (the setting higher_is_better)"
        )

    @property
    def chance(self) -> str:
        """How a reason begins whose score is the chance to hit, by these settings: a chance of another limit is another one."""
        return "hits with " if self.hit_limit is None else f"hits {self.hit_limit:g} with "


class Fate(StrEnum):
    """What became of a candidate, in the order of the checks."""

    CHOSEN = "chosen"
    CONTROL = "control"  # bought in any case
    MEASURED = "measured"  # its residues are in the history, measured or ordered for the objective
    NO_SCORE = "no_score"  # the policy needs a score, and it has none
    METHOD_LIMIT = "method_limit"
    PARENT_LIMIT = "parent_limit"
    CLUSTER_LIMIT = "cluster_limit"
    RANKED_LOWER = "ranked_lower"  # others were better, and there was no room left


FATES: Final = tuple(Fate)


class Choice(StoredModel):
    """One design to buy. `rank` counts from 1; `price_cents` is without VAT; `reason` is one line."""

    candidate: Candidate
    rank: int
    score: float | None = None
    price_cents: int | None = None
    reason: str

    def design(self) -> ProteinSequence:
        """The design as a campaign takes it, with the reason among the designer's columns."""
        chosen = self.candidate
        return ProteinSequence(
            name=chosen.name,
            aa_string=chosen.sequence,
            control=chosen.control,
            metadata=dict(chosen.metadata),
            attributes={**chosen.attributes(), REASON_COLUMN: self.reason},
        )


class KeptFates(StoredModel):
    """The fates of a pool in a record: a byte per candidate, which is a place in `words`, compressed, as base64."""

    words: tuple[str, ...]
    packed: str

    @classmethod
    def of(cls, selection: "Selection") -> Self:
        """The fates of a selection."""
        return cls(words=FATES, packed=b64encode(zlib.compress(selection.fates, 9)).decode())

    def unpacked(self) -> bytes:
        """The place in `words` of each candidate's fate, in the order of the pool; ValueError if it is damaged."""
        try:
            return zlib.decompress(b64decode(self.packed, validate=True))
        except zlib.error as error:
            raise ValueError(str(error)) from None


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The choices, controls first, then by rank, and one byte and one score per candidate of the pool, by its position.

    `fates[i]` is the place of a `Fate` in `FATES`; `scores[i]` is what the policy ranked by, NaN for candidates that it did
    not rank. `notes` says what was decided in a special way, one line each.
    """

    choices: tuple[Choice, ...]
    policy: SelectionPolicy
    seed: int
    pool_size: int
    fates: bytes
    scores: "array[float]"
    notes: tuple[str, ...] = ()

    def fate(self, position: int) -> Fate:
        """What became of the candidate at this position of the pool."""
        return FATES[self.fates[position]]

    def counts(self) -> dict[Fate, int]:
        """The number of candidates of each fate, without those that none had."""
        tally = Counter(self.fates)
        return {fate: tally[place] for place, fate in enumerate(FATES) if tally[place]}

    @property
    def price_cents(self) -> int | None:
        """What the choices cost together, without VAT; None if a price is not known."""
        prices = [choice.price_cents for choice in self.choices]
        return None if None in prices else sum(price for price in prices if price is not None)
