"""Compile the kernels when a wheel or an editable installation is built (hatchling's custom build hook)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

COMPILED = "src/dialeval/core/compiled"


class KernelHook(BuildHookInterface[Any]):
    """Make the libraries of kernels, and name the platform that the wheel is for."""

    def dependencies(self) -> list[str]:
        """Return what the compiler needs besides the package's own dependencies: numba, and a C compiler to link."""
        return ["numba>=0.60", *([] if shutil.which("cc") else ["ziglang"])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; the libraries call no Python, so that one wheel serves all its versions."""
        subprocess.run([sys.executable, str(Path(self.root) / "tools" / "compile_kernels.py")], check=True)
        platforms = [tag.platform for tag in sys_tags() if not tag.platform.startswith(("manylinux", "musllinux"))]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platforms[0]}"
        build_data["artifacts"] += [f"{COMPILED}/*.library", f"{COMPILED}/kernels.json"]
