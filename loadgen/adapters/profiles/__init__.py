"""Server profiles: what a server is, in one YAML file, and everything that starts it from there."""
