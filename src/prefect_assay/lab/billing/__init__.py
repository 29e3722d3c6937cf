"""Prices, stored specifications, quotes, invoices and their PDF files.

It must not know how an experiment proceeds or how an invoice is paid.
"""
