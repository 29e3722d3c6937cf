"""How the flows are deployed: `prefect.yaml` for a work pool, `serve` for one machine, `setup` for what both need."""
