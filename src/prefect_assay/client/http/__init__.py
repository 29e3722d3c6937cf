"""Transport: requests, retries, failures, pages and downloads, without the operations of the service."""
