"""Transport: requests, answers, retries, failures, pages and downloads. Must not know the service's operations."""
