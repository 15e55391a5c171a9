"""The former name of ``aimle.program.data``."""

import sys

from aimle.program import data

if __name__ == "__main__":
    sys.exit(data.main())

sys.modules[__name__] = data
