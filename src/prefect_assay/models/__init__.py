"""Frozen pydantic models, one file per noun. They know neither Prefect nor httpx.

Prefect stores these models in results, so their import paths are stable:
`path -> Sequences -> Batch -> ExperimentSpec -> CostEstimate -> Order -> Payment -> Outcome -> ArchiveRecord`.
"""
