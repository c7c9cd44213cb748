"""The pure core: values in, values out. No clock, socket, file, framework or global randomness."""
