"""The flows: `experiment`, `campaign`, `design_build_test` and `sweep`. They only compose tasks."""

from prefect_assay.flows.campaign import campaign
from prefect_assay.flows.decide import decide
from prefect_assay.flows.design_build_test import design_build_test
from prefect_assay.flows.experiment import experiment
from prefect_assay.flows.sweep import sweep

__all__ = ["campaign", "decide", "design_build_test", "experiment", "sweep"]
