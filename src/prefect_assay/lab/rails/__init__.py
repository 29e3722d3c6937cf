"""The machine payment rails of the lab, and paying an invoice."""
