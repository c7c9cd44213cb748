"""Options of the commands, validated once, wherever they come from."""
