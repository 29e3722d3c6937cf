"""What is read from an archive: results, reports, payments, verification."""
