"""The all-campaign tables: designs, results and candidates of an archive as Parquet files, made from its versions and logs.

Knows neither Prefect, orders nor loops. Everything here needs the extra `parquet`.
"""
