"""How long `make crash` goes on, by its environment."""

import os
from typing import Final

SEED: Final = int(os.environ.get("ASSAY_CRASH_SEED", "1"))
SCHEDULES: Final = int(os.environ.get("ASSAY_CRASH_SCHEDULES", "500"))
END: Final = float(os.environ.get("ASSAY_CRASH_END", "inf"))  # Unix time after which nothing new is begun
