"""The composition root: builds engines, transports and stores from options. Nothing else does."""
