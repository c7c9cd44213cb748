"""Values to strings: terminal, HTML, CSV, JSON. Opens no file."""
