"""`python -m reproduction --cub200 FOLDER [--omniglot FOLDER]`: run what is left, then draw docs/reproduction.md.

--estimate only says how long it will take; --keep gathers what is there and draws the page; --page draws it from
studies/results/ alone.
"""

import argparse
import sys
from pathlib import Path


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    reader.add_argument("--cub200", metavar="FOLDER", help="CUB_200_2011, unpacked")
    reader.add_argument("--omniglot", metavar="FOLDER", help="images_background and images_evaluation, unpacked")
    reader.add_argument("--out", type=Path, default=Path("runs"), help="folder of the studies (default: runs)")
    reader.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    for name in ("estimate", "keep", "page"):
        reader.add_argument(f"--{name}", action="store_true")
    options = reader.parse_args()
    options.data = {name: place for name in ("cub200", "omniglot") if (place := getattr(options, name)) is not None}
    if not options.data and not options.page:
        reader.error("say where the photos are: --cub200 FOLDER, --omniglot FOLDER")
    return options


def main() -> int:
    options = arguments()
    from reproduction import page, run
    from reproduction.planned import STUDIES

    data = options.data
    if options.page:
        page.write()
        return 0
    for line in run.estimate(data, options.out, options.workers):
        print(line, file=sys.stderr)
    if options.estimate:
        return 0
    if not options.keep:
        return run.run(data, options.out, options.workers)
    for study in STUDIES:
        if study.data in data:
            run.keep(study, data, options.out)
    run.keep_search(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
