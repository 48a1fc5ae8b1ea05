"""Prints the packages of a lock as a software bill of materials: CycloneDX 1.5, JSON, with hashes.

    sbom.py LOCK [--installed] > FILE

With `--installed`, only the packages that this Python has: a lock serves several versions of Python. It runs while the
image is built, with the standard library alone; Debian's packages are not in it. The same lock gives the same bytes.
"""

import json
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path

_ENTRY = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)(?:\[[^]]*\])?==([^ ;\\\n]+)[^\n]*\n((?:    --hash=[^\n]*\n?)*)", re.MULTILINE
)
_SPACE = uuid.UUID("6f0c2f5e-6a0e-4a6b-9a53-6c6b2f1f5d11")


def bill_of_materials(lock: str, name: str, installed: bool = False) -> dict[str, object]:
    """Returns the document.

    Args:
        lock: the text of a lock, as `uv pip compile --generate-hashes` writes it.
        name: the name of the container that is described.
        installed: leave out packages that this Python does not have.
    """
    found = [entry for entry in sorted(_ENTRY.findall(lock)) if not installed or _is_installed(*entry[:2])]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, name + lock)}",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": name, "name": name}},
        "components": [_component(*entry) for entry in found],
    }


def _component(package: str, version: str, hashes: str) -> dict[str, object]:
    """Returns one entry. A version has a file for each platform: the hashes belong to what is distributed."""
    digests = sorted(set(re.findall(r"sha256:([0-9a-f]{64})", hashes)))
    files = {
        "type": "distribution",
        "url": f"https://pypi.org/project/{package}/{version}/#files",
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in digests],
    }
    purl = f"pkg:pypi/{package}@{version}"
    common = {"type": "library", "bom-ref": purl, "name": package, "version": version, "purl": purl}
    return {**common, "externalReferences": [files]}


def _is_installed(package: str, version: str) -> bool:
    try:
        return metadata.version(package) == version
    except metadata.PackageNotFoundError:
        return False


def main(path: str, option: str = "") -> None:
    """Prints the document."""
    lock = Path(path)
    name = f"shardwright-{lock.stem}"
    print(json.dumps(bill_of_materials(lock.read_text(encoding="utf-8"), name, option == "--installed"), indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
