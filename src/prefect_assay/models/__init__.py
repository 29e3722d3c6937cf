"""Frozen pydantic models, one module per noun, which callers import; they must not know Prefect or httpx.

Prefect pickles `report`, with what it holds (`job`, `archived`, `vocabulary`), as results of runs: these paths are
stable. `path -> Sequences -> Batch -> ExperimentSpec -> CostEstimate -> Order -> Payment -> Outcome -> ArchiveRecord`.
"""

__all__: list[str] = []
