"""`python -m tests.semantics [options of pytest]`: the tests that docs/behaviours.md names, and no others."""

from __future__ import annotations

import sys

import pytest

from tests.semantics.table import named_tests

if __name__ == "__main__":
    sys.exit(pytest.main([*sys.argv[1:], *named_tests()]))
