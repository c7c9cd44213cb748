"""What a run may ask for: which servers, which files, how much load."""
