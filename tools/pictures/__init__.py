"""Pictures of the service's page for its document."""
