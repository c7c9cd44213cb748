"""The process that measures: one for each run, apart from the service, and told what to do on its standard input."""
