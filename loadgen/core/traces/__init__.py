"""Bytes of trace files to conversations.

`detect` names a file's format, `framing` cuts its bytes into rows, one module a format parses a row, `table` keeps the
columns of all rows, `part` cuts and rescales them, `facts` describes them, `source` turns rows into conversations.
`texts` makes prompts for rows that hold lengths only; `lengths` and `synthetic` make data without a file.
"""
