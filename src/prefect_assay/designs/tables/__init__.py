"""Reading files of text and tables: encodings, compression, workbooks, Parquet, delimiters, decimal commas.

Designs, histories and landscapes are read through this package. It knows nothing of what the columns mean, of paths or of S3.
"""
