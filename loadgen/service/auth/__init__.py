"""Who may do what: keys, sessions of browsers, and what was done."""
