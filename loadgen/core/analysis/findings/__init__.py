"""Whether a measurement may be believed: one small rule a doubt, each with its evidence and what to do about it."""
