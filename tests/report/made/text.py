"""Text from outside at its worst."""

HOSTILE = "</td><svg onload=alert(1)></script><script>alert(2)</script>\x1b[2J\u202eevil <!-- \" ' & `"
