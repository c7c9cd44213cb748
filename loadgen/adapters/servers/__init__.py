"""What a server under test says of itself."""
