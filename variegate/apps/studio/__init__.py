"""The studio: see, tune and trust a policy in the browser, by the executor that trains."""
