"""The browser pages behind the links of the API."""
