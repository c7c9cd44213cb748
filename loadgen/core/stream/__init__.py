"""Bytes of a response, with their arrival stamps, to events and to one answer."""
