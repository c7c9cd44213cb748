"""Metrics pushed to a collector of OpenTelemetry by OTLP over HTTP. `collector` needs the extra `otlp`."""
