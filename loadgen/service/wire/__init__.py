"""What the API takes and gives, as JSON: the OpenAPI document is made of this."""
