"""The flows: `campaign`, `design_build_test`, `sweep` and `decide`. They only compose."""

from prefect_assay.flows.campaign import campaign
from prefect_assay.flows.decide import decide
from prefect_assay.flows.design_build_test import design_build_test
from prefect_assay.flows.sweep import sweep

__all__ = ["campaign", "decide", "design_build_test", "sweep"]
