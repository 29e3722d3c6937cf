"""Prices, stored specifications, quotes and invoices. It must not know how an invoice is paid."""
