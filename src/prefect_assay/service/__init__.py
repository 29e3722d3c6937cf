"""The service as its contract describes it: words, models, the client, signed updates. Knows neither Prefect nor orders."""
