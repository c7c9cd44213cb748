"""Prometheus: a page to be scraped while a command runs, and stored runs in the form that Prometheus loads."""
