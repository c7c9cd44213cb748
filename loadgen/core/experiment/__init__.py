"""The plan of an experiment: which server is started when, what it is asked for, and how long that should take."""
