"""How often answers are right against the chance they were given: `python -m benchmarks.verdict_diagram FILE PNG`.

FILE holds the divisions that `python -m benchmarks.verdicts … --json FILE` has measured.
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from benchmarks.calibration_error import BINS
from benchmarks.verdicts import GROUPS, measured

LEAST = 0.002  # of the mass of a group: fewer answers are no share


def draw(file: Path, picture: Path) -> None:
    names = list(dict.fromkeys(json.loads(line)["set"] for line in file.read_text().splitlines()))
    figure, panels = pyplot.subplots(1, len(names), figsize=(3 * len(names), 3.3), sharey=True, squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        divisions = measured(file, name).values()
        panel.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for group in GROUPS:
            rows = np.array([division[f"{group}, diagram"] for division in divisions]).reshape(-1, 3, BINS)
            mass, chance, right = rows.sum(0)
            some = mass > LEAST * mass.sum()
            line = panel.plot(chance[some] / mass[some], right[some] / mass[some], label=f"labels of {group}")[0]
            size = 12 + 120 * mass[some] / mass.sum()
            panel.scatter(chance[some] / mass[some], right[some] / mass[some], s=size, color=line.get_color())
        panel.set(title=f"{name}, {len(divisions)} divisions", xlabel="chance", xlim=(0, 1), ylim=(0, 1))
    panels[0, 0].set_ylabel("share of right answers")
    panels[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    mpl.use("Agg")
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
