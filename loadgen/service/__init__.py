"""The service: runs on request and by schedule, their history, and the API over them."""
