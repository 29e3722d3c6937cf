"""What importing this package adds to `import prefect`, and how fast the command line answers."""

import sys

from figures import Ratio, report
from side_by_side import compare, python

medians = compare(
    {
        "import prefect": python("import prefect"),
        "import prefect, prefect_assay": python("import prefect, prefect_assay"),
        "python": python("pass"),
        "prefect-assay --help": [sys.executable, "-m", "prefect_assay.cli", "--help"],
        "import assay_lab.__main__": python("import assay_lab.__main__"),
    },
    rounds=5,
)
for name, value in medians.items():
    print(f"{name:40} {value * 1000:8.0f} ms")
base = medians["import prefect"]
report(
    Ratio(
        "import",
        "import prefect, prefect_assay",
        ours=medians["import prefect, prefect_assay"],
        beside="import prefect",
        other=base,
        unit="s",
        goal=1.05,
    )
)
report(
    Ratio(
        "import",
        "prefect-assay --help",
        ours=medians["prefect-assay --help"],
        beside="import prefect",
        other=base,
        unit="s",
        goal=0.6,
    )
)
