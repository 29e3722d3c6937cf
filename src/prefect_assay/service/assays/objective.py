"""What a round of a loop can improve. The assay type that measures a value describes it."""

from enum import StrEnum


class Objective(StrEnum):
    """What a round should improve."""

    AFFINITY = "affinity"
    MELTING = "melting"
    EXPRESSION = "expression"
