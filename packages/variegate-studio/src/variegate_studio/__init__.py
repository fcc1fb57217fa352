"""The studio: tune a policy on your own images in the browser, with the executor that trains.

``vg.studio`` and ``variegate studio`` open it. Nothing is imported here, because every command loads ``command``.
"""
