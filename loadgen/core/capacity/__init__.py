"""The highest load at which a server still meets its objectives: what a probe shows, and which comes next."""
