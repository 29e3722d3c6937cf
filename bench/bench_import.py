"""What importing this package adds to `import prefect`, and how fast the command line answers."""

import sys

from side_by_side import compare, python

medians = compare(
    {
        "import prefect": python("import prefect"),
        "import prefect, prefect_assay": python("import prefect, prefect_assay"),
        "python": python("pass"),
        "prefect-assay --help": [sys.executable, "-m", "prefect_assay.cli", "--help"],
        "import prefect_assay.lab.__main__": python("import prefect_assay.lab.__main__"),
    }
)
for name, value in medians.items():
    print(f"{name:40} {value * 1000:8.0f} ms")
base = medians["import prefect"]
print(f"prefect_assay on top of prefect: {(medians['import prefect, prefect_assay'] - base) * 1000:+.0f} ms")
print(f"ratio: {medians['import prefect, prefect_assay'] / base:.3f}")
