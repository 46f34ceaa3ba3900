"""The REST API under /api/v1/: thin views over services and selectors, and what turns their answers and refusals into HTTP."""
