"""What a server tells of itself, engine-neutral: scraped samples, and what they add up to over a span of time."""
