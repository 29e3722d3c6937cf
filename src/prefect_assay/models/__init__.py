"""Frozen pydantic models, one module per noun; they must not know Prefect or httpx.

Prefect pickles `report`, with what it holds (`job`, `archived`, `vocabulary`), as results of runs: these paths are
stable. `path -> Sequences -> Batch -> ExperimentSpec -> CostEstimate -> Order -> Payment -> Outcome -> ArchiveRecord`.
"""

__all__ = [
    "archived",
    "base",
    "billing",
    "experiment",
    "job",
    "open_links",
    "plan",
    "report",
    "result",
    "sequences",
    "service",
    "spec",
    "spec_rules",
    "sweep",
    "target",
    "tokens",
    "update",
    "vocabulary",
]
