"""Pack the measured tables for an archive that gives them a DOI, such as Zenodo.

    python scripts/archive_results.py results.zip

The archive has benchmarks/results/ and pages/, the scripts that made them, CITATION.cff and the
license; `archive.json` with a SHA-256 of each file, what measured each table, and the command that
measures it again; and `.zenodo.json`, which Zenodo reads.  The same tree makes the same bytes.
"""

import argparse
import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from revelu import __version__
from revelu.cli.bench import TABLES

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
# Zip files have no earlier date, and the tree has one of its own.
EPOCH = (1980, 1, 1, 0, 0, 0)


def files() -> list[Path]:
    """List what is packed, in the order in which it is."""
    kinds = ("results/*.json", "pages/*", "*.py", "README.md")
    found = [path for kind in kinds for path in sorted(BENCHMARKS.glob(kind)) if path.is_file()]
    return [*(ROOT / name for name in ("CITATION.cff", "LICENSE")), *found]


def tables() -> Iterator[dict[str, Any]]:
    """Say of each table what measured it, and what measures it again."""
    for path in sorted((BENCHMARKS / "results").glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        yield {
            "file": path.relative_to(ROOT).as_posix(),
            "machine": content["machine"],
            "versions": content["versions"],
            "again": _command(content["table"]),
        }


def _command(mark: str) -> str:
    """Find what writes a table: a script of its name or its first words, or that names it."""
    words = mark.replace("-", "_")
    whole = [name for name in TABLES if name == mark]
    naming = [name for name, script in TABLES.items() if f'"{mark}"' in _source(script)]
    first = sorted((name for name in TABLES if words.startswith(f"{name}_")), key=len)
    return f"revelu bench {[*first, *naming, *whole][-1]} --write"


def _source(script: str) -> str:
    return (BENCHMARKS / script).read_text(encoding="utf-8")


def manifest(packed: Mapping[str, bytes]) -> dict[str, Any]:
    """Describe the archive."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in packed.items()}
    return {"revelu": __version__, "tables": list(tables()), "sha256": sums}


def zenodo() -> dict[str, Any]:
    """Return what Zenodo asks for, from CITATION.cff."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return {
        "title": f"{cited['title']} {cited['version']}: measured tables",
        "description": cited["abstract"],
        "upload_type": "dataset",
        "license": cited["license"].lower(),
        "version": cited["version"],
        "creators": [{"name": author["name"]} for author in cited["authors"]],
        "keywords": cited["keywords"],
    }


def pack(path: Path) -> list[str]:
    """Write the archive; return the names of what it holds."""
    packed = {file.relative_to(ROOT).as_posix(): file.read_bytes() for file in files()}
    described = {"archive.json": manifest(packed), ".zenodo.json": zenodo()}
    packed |= {
        name: (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
        for name, content in described.items()
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in packed.items():
            entry = zipfile.ZipInfo(name, date_time=EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return list(packed)


def main() -> None:
    """Write the archive."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path, help="where the archive is written: a .zip")
    options = parser.parse_args()
    print(f"{len(pack(options.path))} files in {options.path}")


if __name__ == "__main__":
    main()
